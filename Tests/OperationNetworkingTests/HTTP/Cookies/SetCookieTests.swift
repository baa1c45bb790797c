// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct SetCookieTests {
    private let now = Date(timeIntervalSince1970: 1_700_000_000)

    @Test(arguments: [
        ("a=b", "a", "b"), ("a=b; Path=/", "a", "b"), (" a = b ", "a", "b"), ("a=b=c", "a", "b=c"), ("a=", "a", ""),
        ("=b", "", "b"), ("b", "", "b"), ("\ta\t=\tb\t;x", "a", "b"), ("a=\"b c\"", "a", "\"b c\""),
        ("a=b,c=d", "a", "b,c=d"),
        ("ä=ö", "ä", "ö"), ("a=b;;;", "a", "b"), ("a b=c", "a b", "c"), ("a=b\tc", "a", "b\tc"),
        ("\u{301}=x", "\u{301}", "x"),
    ])
    func `the name and value of a cookie are parsed as RFC 6265bis requires`(
        text: String, name: String, value: String
    ) throws {
        let cookie = try #require(SetCookie(text, now: now))
        #expect(cookie.name == name)
        #expect(cookie.value == value)
    }

    @Test(arguments: [
        ("a=1, b=2", ["a=1", "b=2"]),
        ("a=1; Path=/; Secure, b=2; Max-Age=0", ["a=1; Path=/; Secure", "b=2; Max-Age=0"]),
        ("a=1; Expires=Wed, 09-Nov-2099 23:12:40 GMT, b=2", ["a=1; Expires=Wed, 09-Nov-2099 23:12:40 GMT", "b=2"]),
        ("a=1; Secure, b[c]=2", ["a=1; Secure", "b[c]=2"]), ("a=x,y=z", ["a=x,y=z"]), ("", [""]), ("a=1,", ["a=1,"]),
    ])
    func `headers that Foundation joined are separated`(joined: String, expected: [String]) {
        #expect(joined.joinedCookies == expected)
    }

    @Test(arguments: ["", ";", "=", " = ", ";a=b", "a=b\u{0}", "a\r\n=b", "a=b\u{7F}", "a=b; Path=/\u{1}"])
    func `an empty cookie or one with control characters is ignored`(text: String) {
        #expect(SetCookie(text, now: now) == nil)
    }

    @Test func `the name and value have at most 4096 bytes together`() {
        #expect(SetCookie("a=" + String(repeating: "b", count: 4095), now: now) != nil)
        #expect(SetCookie("a=" + String(repeating: "b", count: 4096), now: now) == nil)
        #expect(SetCookie("a=" + String(repeating: "é", count: 2048), now: now) == nil)
    }

    @Test(
        arguments: [
            ("a=b; Max-Age=10", 10.0), ("a=b; max-age=0", nil), ("a=b; Max-Age=-5", nil), ("a=b; Max-Age=-", nil),
            ("a=b; Max-Age=99999999999999999999", 34_560_000),
            ("a=b; Expires=Wed, 22 Nov 2023 00:00:00 GMT", 611_200 - 0.0),
            ("a=b; Max-Age=10; Expires=Wed, 22 Nov 2023 00:00:00 GMT", 10),
            ("a=b; Expires=Wed, 22 Nov 2023 00:00:00 GMT; Max-Age=10", 10),
            ("a=b; Max-Age=10; Max-Age=20", 20), ("a=b; Expires=01 Jan 2500 00:00:00", 34_560_000),
        ] as [(String, Double?)])
    func `a cookie expires by Max-Age, else by Expires, and after at most 400 days`(
        text: String, seconds: Double?
    ) throws {
        let expires = try #require(SetCookie(text, now: now)?.expires)
        #expect(expires == seconds.map { now.addingTimeInterval($0) } ?? .distantPast)
    }

    @Test(arguments: [
        "a=b", "a=b; Max-Age=", "a=b; Max-Age=1x", "a=b; Max-Age=+1", "a=b; Max-Age=1.5", "a=b; Expires=soon",
        "a=b; Expires",
    ])
    func `an unreadable expiration is ignored`(text: String) throws {
        let cookie = try #require(SetCookie(text, now: now))
        #expect(cookie.expires == nil)
    }

    @Test
    func `attribute names are case-insensitive, the last value counts, and unknown attributes are ignored`() throws {
        let text =
            "a=b; DOMAIN=.Example.COM; path=/x; SECURE; HttpOnly=whatever; samesite=LAX; Foo=1; Path=/y;Domain=b.com"
        let cookie = try #require(SetCookie(text, now: now))
        #expect(cookie.domain == "b.com")
        #expect(cookie.path == "/y")
        #expect(cookie.isSecure && cookie.isHTTPOnly)
        #expect(cookie.sameSite == .lax)
        let other = try #require(SetCookie("a=b; Path=/x; Path=relative; SameSite=Strict; SameSite=odd", now: now))
        #expect(other.path == nil)
        #expect(other.sameSite == nil)
        let long = try #require(SetCookie("a=b; Path=/" + String(repeating: "x", count: 1024), now: now))
        #expect(long.path == nil)
    }

    @Test func `arbitrary text never crashes the parser`() {
        let pieces = [
            "a", "=", ";", " ", "\t", "\"", "Path", "Domain", "Max-Age", "Expires", "-", "9", "é", "\u{301}",
            "\u{200D}", ",", "Secure",
        ]
        for text in SeededGenerator.texts(20_000, of: pieces, most: 10, seed: 2760) {
            guard let cookie = SetCookie(text, now: now) else { continue }
            #expect(!(cookie.name + cookie.value).contains(";"))
        }
    }

    @Test(arguments: [
        ("Wed, 09 Jun 2021 10:18:14 GMT", 1_623_233_894.0), ("Wed, 09-Jun-2021 10:18:14 GMT", 1_623_233_894),
        ("10:18:14 2021 jun 9", 1_623_233_894), ("09 June 21 10:18:14", 1_623_233_894),
        ("1:2:3 1 jan 1970", 3723), ("01 Jan 70 00:00:00", 0), ("01 Jan 69 00:00:00", 3_124_224_000),
        ("Thu, 01-Jan-1970 00:00:00xyz GMT", 0), ("1x Jan 1970 0:0:0", 0), ("Thu;01;Jan;1970;00:00:00", 0),
        ("garbage 01 Jan 1970 00:00:00 more 02 Feb 1999 11:11:11", 0), ("01 January99 1970 00:00:00", 0),
        ("31 Dec 1601 23:59:59", -11_612_937_601),
    ])
    func `a cookie date is parsed with its parts in any order`(text: String, seconds: Double) {
        #expect(CookieDate.parse(text)?.timeIntervalSince1970 == seconds)
    }

    @Test(arguments: [
        "", "Wed", "09 Jun 2021", "10:18:14 Jun 2021", "09 2021 10:18:14", "32 Jun 2021 10:18:14",
        "0 Jun 2021 10:18:14",
        "31 Jun 2021 10:18:14", "29 Feb 2021 10:18:14", "09 Jun 2021 24:00:00", "09 Jun 2021 10:60:00",
        "09 Jun 2021 10:18:60", "09 Jun 1600 10:18:14", "09 Jun 20211 10:18:14", "09 Jun 2021 100:18:14",
        "09 Jun 2021 10:18", "123 Jun 2021 10:18:14", "09 Jum 2021 10:18:14",
    ])
    func `a cookie date with a missing or invalid part is rejected`(text: String) {
        #expect(CookieDate.parse(text) == nil)
    }
}
