// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct WebAddressTests {
    private let base = "https://Example.com:443/dir/page?q=1#top"

    @Test(arguments: [
        ("//[::1]/", "https://[::1]/"), ("//[::1]:8080/x", "https://[::1]:8080/x"),
        ("?q", "https://example.com/dir/page?q#top"), ("./foo", "https://example.com/dir/foo#top"),
        ("foo", "https://example.com/dir/foo#top"), ("", "https://example.com/dir/page?q=1#top"),
        ("#low", "https://example.com/dir/page?q=1#low"), ("/a#", "https://example.com/a#"),
        ("HTTP://OTHER:80/A", "http://other/A#top"), ("//user:pass@other/", "https://other/#top"),
        ("/a b/é?ü \"<>", "https://example.com/a%20b/%C3%A9?%C3%BC%20%22%3C%3E#top"),
        ("/100%/%41%zz", "https://example.com/100%25/%41%25zz#top"), ("/[x]\\y", "https://example.com/%5Bx%5D%5Cy#top"),
        ("  /blanks\t", "https://example.com/blanks#top"), ("//other:/", "https://other/#top"),
        ("//127.1/", "https://127.0.0.1/"), ("//[0:0::1]/", "https://[::1]/"),
        ("/a/%2F/../b", "https://example.com/a/b#top"), ("https://h?x", "https://h/?x#top"),
    ])
    func `a Location is resolved as RFC 3986 and RFC 9110 require`(location: String, expected: String) throws {
        let target = try WebAddress(location, foundAt: WebAddress(base))
        let fragment = expected.contains("#") ? expected : expected + "#top"
        #expect(target.text == fragment)
        #expect(target.url?.absoluteString == fragment)
    }

    @Test(arguments: [
        ("ftp://h/", WebAddress.Flaw.scheme("ftp")), ("file:///etc/passwd", .scheme("file")),
        ("javascript:alert(1)", .scheme("javascript")), ("data:,x", .scheme("data")), ("mailto:a@b", .scheme("mailto")),
        ("//", .host), ("http:///x", .host), ("http:x", .host), ("//a%20b/", .host), ("//%00/", .host),
        ("//a%2Fb/x", .host), ("//ex%61mple.com/", .host), ("//1.2.3.4.5/", .host), ("//a@b@c/", .host),
        ("//[::1%25eth0]/", .host), ("//[::1/", .host), ("//[]/", .host), ("//[::1]x/", .host),
        ("//good\\@evil/", .host), ("//a b/", .host), ("//é/", .host), ("//.x/", .host), ("//h:0/", .port),
        ("//h:65536/", .port), ("//h:9999999999999999999/", .port), ("//h:-1/", .port), ("//h:8a/", .port),
        ("/a\r\nX: y", .badCharacters), ("/a\u{0}", .badCharacters), ("/a\tb", .badCharacters),
    ])
    func `an unusable Location is rejected with its flaw`(location: String, flaw: WebAddress.Flaw) throws {
        let base = try WebAddress(base)
        if location.hasPrefix("//good") {
            // The text before the at sign is the user. The host follows it.
            #expect(try WebAddress(location, foundAt: base).origin.host == "evil")
        } else {
            #expect(throws: flaw) { try WebAddress(location, foundAt: base) }
        }
    }

    @Test func `a relative reference keeps the IPv6 zone, and a Location cannot set one`() throws {
        let base = try WebAddress("http://[fe80::1%25eth0]/a/b")
        #expect(try WebAddress("c", foundAt: base).text == "http://[fe80::1%25eth0]/a/c")
        for location in ["//[fe80::1%25eth0]/", "http://[fe80::1%25eth0]/", "http://[fe80::2%25lo]/"] {
            #expect(throws: WebAddress.Flaw.host) { try WebAddress(location, foundAt: base) }
        }
    }

    @Test func `a Location with the same IPv6 address and port keeps the zone of the request`() throws {
        let base = try WebAddress("http://[fe80::1%25eth0]:8080/a/b")
        for location in ["http://[fe80::1]:8080/c", "//[FE80:0::1]:8080/c", "HTTP://[fe80::1]:08080/c"] {
            #expect(try WebAddress(location, foundAt: base).text == "http://[fe80::1%25eth0]:8080/c")
        }
        for (location, origin) in [
            ("http://[fe80::1]/c", "http://[fe80::1]"), ("https://[fe80::1]:8080/", "https://[fe80::1]:8080"),
            ("http://[fe80::2]:8080/", "http://[fe80::2]:8080"), ("//u@[fe80::1]:8080/", "http://[fe80::1]:8080"),
        ] {
            #expect(try WebAddress(location, foundAt: base).origin.description == origin)
        }
        let plain = try WebAddress("http://[fe80::1]/a")
        #expect(try WebAddress("http://[fe80::1]/c", foundAt: plain).text == "http://[fe80::1]/c")
        #expect(throws: WebAddress.Flaw.host) { try WebAddress("http:c", foundAt: base) }
    }

    @Test func `arbitrary text never crashes the parser, and accepted text is a valid web URL`() throws {
        let base = try WebAddress(base)
        let pieces = [
            "http", "https", ":", "/", "//", "[", "]", "::1", "@", "a", "%", "%41", "é", "\u{301}", ".", "..",
            "?", "#", "\\", " ", "8080", "99999", "\u{0}", "\n", "127.1", "%25",
        ]
        for text in SeededGenerator.texts(20_000, of: pieces, most: 8, seed: 612) {
            guard let target = try? WebAddress(text, foundAt: base) else { continue }
            let url = try #require(target.url, "\(text)")
            let again = try #require(WebAddress(url), "\(text)")
            #expect(again.text == target.text)
            #expect(target.text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F })
            let request = try NetworkRequest("GET", url: url)
            #expect(WebAddress(request.url)?.resource == target.resource, "\(text)")
        }
    }

    @Test(arguments: [
        ("http://a/", "http://a:80/x", true), ("http://a/", "https://a/", false),
        ("https://a/", "https://a:444/", false),
        ("https://a/", "https://A/", true), ("https://a/", "https://b.a/", false), ("https://a/", "https://a./", false),
    ])
    func `an origin consists of scheme, host and port`(one: String, other: String, isSame: Bool) throws {
        #expect((try WebAddress(one).origin == WebAddress(other).origin) == isSame)
    }

    @Test(arguments: [
        ("127.0.0.1", true), ("127.1", true), ("2130706433", true), ("0x7f.1", true), ("[::1]", true), ("::1", true),
        ("1.example", false), ("example.1a", false), ("a", false), ("", false), ("1.2.3.4.5", false),
    ])
    func `a numeric address is distinguished from a host name`(host: String, isAddress: Bool) {
        #expect(HostName.isAddress(host) == isAddress)
    }
}
