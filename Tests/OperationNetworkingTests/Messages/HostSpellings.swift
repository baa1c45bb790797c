// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// Spellings of hosts, as people and servers write them.
enum HostSpellings {
    /// The canonical form of each host, with other spellings.
    static let same: [(host: String, spellings: [String])] = [
        (
            "example.com",
            [
                "EXAMPLE.com", "Example.Com", "ex%61mple.com", "%65xample.com", "example%2Ecom", "EXAMPLE%2ecom",
                "ex\u{FF41}mple.com", "example\u{3002}com", "ex%EF%BD%81mple.com",
            ]
        ),
        ("example.com.", ["Example.COM.", "example.com%2E"]),
        (
            "xn--bcher-kva.example",
            [
                "b\u{FC}cher.example", "B\u{DC}CHER.example", "B\u{FC}cher.EXAMPLE", "XN--BCHER-KVA.EXAMPLE",
                "Xn--Bcher-Kva.Example", "b%C3%BCcher.example", "b%c3%bccher.example", "B%C3%9Ccher%2Eexample",
                "bu\u{308}cher.example", "bu%CC%88cher.example", "%78n--bcher-kva.example",
            ]
        ),
        ("xn--strae-oqa.example", ["stra\u{DF}e.example", "stra%C3%9Fe.example", "XN--strae-OQA.example"]),
        (
            "xn--e1afmkfd.example",
            [
                "\u{43F}\u{440}\u{438}\u{43C}\u{435}\u{440}.example",
                "\u{41F}\u{420}\u{418}\u{41C}\u{415}\u{420}.example",
            ]
        ),
        (
            "127.0.0.1",
            [
                "127.1", "127.0.1", "2130706433", "0x7f.1", "0X7F.0.0.1", "0x7f000001", "0177.0.0.1", "017700000001",
                "127.0.0x1", "0x7F.0x0.0x0.0x1", "127.000.000.001", "%3127.1", "%31%32%37.0.0.1",
                "\u{FF11}\u{FF12}\u{FF17}.0.0.1",
            ]
        ),
        ("255.255.255.255", ["4294967295", "0xffffffff", "255.255.65535", "0377.0xffffff"]),
        ("0.0.0.0", ["0", "0.0", "0x0", "00.0.0.0"]), ("1.0.1.0", ["1.256", "01.256"]),
        (
            "[::1]",
            ["[0:0:0:0:0:0:0:1]", "[0000::0001]", "[::0:1]", "[0:0::1]", "[::0.0.0.1]", "[0::0:0:1]"]
        ),
        ("[2001:db8::a]", ["[2001:DB8::A]", "[2001:db8:0:0:0:0:0:a]", "[2001:0db8::000a]"]),
        ("[::ffff:127.0.0.1]", ["[::FFFF:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7F00:0001]"]),
        ("[fe80::1%25eth0]", ["[FE80::1%25eth0]", "[fe80:0::1%25eth0]", "[fe80::1%eth0]"]),
        // The names of interfaces are case-sensitive.
        ("[fe80::1%25Eth0]", ["[FE80::0:1%25Eth0]"]), ("[fe80::1%251]", ["[fe80::0001%251]"]),
        ("[fe80::1%25en-0.1_a~b]", ["[Fe80::1%25en-0.1_a~b]"]), ("[fe80::1]", ["[FE80:0:0::1]"]),
        ("a_b.example", ["A_B.example"]), ("a~b.example", ["A~b.example"]), ("-a.example", ["-A.example"]),
        ("1.example", ["%31.Example"]), ("3com", ["3COM"]), ("example.1a", ["EXAMPLE.1a"]), ("a.1", ["A.1"]),
        ("a..b", ["A..B"]), ("localhost", ["LOCALHOST", "lOcalhost"]), ("1e100.net", ["1E100.NET"]),
        ("ff", ["FF"]), ("xn--a", ["XN--A"]),
    ]

    /// Texts that are not a host, or are ambiguous.
    static let refused = [
        "1.2.3.4.5", "256.1.1.1", "1.2.3.4.", "1.16777216", "08.1.1.1", "0x", "0x.1", "4294967296", "0x100000000",
        "1..2",
        "99999999999999999999", "a%20b", "a%00b", "a%2Fb", "a%40b", "a%3A80", "a%25b", "a%23b", "a%5Cb", "%", "a%4",
        "%FF.example", "b%C3.example", "[::1%25]", "[fe80::1%25eth%30]", "[fe80::1%25abcdefghijklmnop]", "[::1%25a]b",
        "[v1.a]", "[::g]", "[1.2.3.4]", "[]", "[::1", "[::1%]", "[fe80::1%25a/b]", ".a", ".", "..", "a!b", "a,b",
        "a;b", "a$b", "(a)", "a*b", "a%E2%80%8D%2Fb", "%2E", "%2e%2E", "a%0ab", "a%7Fb",
    ]
}
