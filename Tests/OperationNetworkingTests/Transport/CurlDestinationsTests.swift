// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import Testing

    @Suite(.timeLimit(.minutes(3)))
    struct CurlDestinationsTests {
        private func places(
            of urls: [String], _ environment: [String: String] = [:],
            _ change: (inout CurlSession.Configuration) -> Void = { _ in }
        ) throws -> [CurlDestinations.Place] {
            var configuration = CurlSession.Configuration()
            change(&configuration)
            var places = CurlDestinations(configuration) { environment[$0] }
            return try urls.map { text in
                places.place(of: try NetworkRequest(url: try #require(URL(string: text))).origin)
            }
        }

        private func names(
            of urls: [String], _ environment: [String: String] = [:],
            _ change: (inout CurlSession.Configuration) -> Void = { _ in }
        ) throws -> [String] {
            try places(of: urls, environment, change).map(\.name)
        }

        @Test func `connections share a slot pool by host and port, regardless of the scheme`() throws {
            let urls = [
                "http://A.test/x", "https://a.test/", "http://a.test:443/", "http://[::1]:8080/", "http://1.2.3.4",
            ]
            #expect(try names(of: urls) == ["a.test:80", "a.test:443", "a.test:443", "::1:8080", "1.2.3.4:80"])
            #expect(try places(of: urls).map(\.isNumeric) == [false, false, false, true, true])
        }

        @Test func `an overridden address identifies the slot pool, together with the port of the URL`() throws {
            let urls = ["http://a.test", "http://b.test/", "https://a.test", "http://c.test", "http://[::1]:90/"]
            let found = try places(of: urls) {
                $0.addressOverrides = [
                    "A.test:80": "127.0.0.1:8080", "b.test:80": "127.0.0.1:9090", "a.test:443": "[::2]:8443",
                    "c.test:80": ":7070", "[::1]:90": "other.test",
                ]
            }
            #expect(found.map(\.name) == ["127.0.0.1:80", "127.0.0.1:80", "::2:443", "c.test:80", "other.test:90"])
            #expect(found.map(\.isNumeric) == [true, true, true, false, false])
        }

        @Test func `an address override applies to every spelling of its host`() throws {
            let urls = [
                "http://[::1]", "http://[0::1]:81", "http://b\u{FC}cher.example", "http://127.1", "http://d.test",
            ]
            let found = try names(of: urls) {
                $0.addressOverrides = [
                    "[0:0:0:0:0:0:0:1]:80": "1.1.1.1", "[::0.0.0.1]:": "2.2.2.2", "B\u{DC}CHER.example:80": "3.3.3.3",
                    "0x7f.1:80": "4.4.4.4", "u@d.test:80": "5.5.5.5", "[d.test:80": "6.6.6.6", "d.test": "7.7.7.7",
                ]
            }
            #expect(found == ["1.1.1.1:80", "2.2.2.2:81", "3.3.3.3:80", "4.4.4.4:80", "d.test:80"])
        }

        @Test func `the most specific address override of a host applies`() throws {
            let urls = ["http://a.test", "http://a.test:81", "http://b.test", "http://b.test:81", "http://c.test:82"]
            let found = try names(of: urls) {
                $0.addressOverrides = [":": "4.4.4.4", ":80": "3.3.3.3", "a.test:": "2.2.2.2", "a.test:80": "1.1.1.1"]
            }
            #expect(found == ["1.1.1.1:80", "2.2.2.2:81", "3.3.3.3:80", "4.4.4.4:81", "4.4.4.4:82"])
        }

        @Test func `an IPv6 zone is part of the slot pool but not of host comparisons`() throws {
            let urls = ["http://[fe80::1%25a]/", "http://[fe80::1%25b]/", "http://[fe80::1]/"]
            #expect(try names(of: urls) == ["fe80::1%a:80", "fe80::1%b:80", "fe80::1:80"])
            #expect(try names(of: urls) { $0.proxy = .url("p:1") } == ["p:1", "p:1", "p:1"])
            #expect(try names(of: urls) { $0.proxy = .url("p:1", exceptions: ["fe80::/10"]) }.first == "fe80::1%a:80")
        }

        @Test func `a Unix-domain socket is a single slot pool`() throws {
            let found = try places(of: ["http://a.test", "https://b.test", "http://c.test:99"]) {
                $0.unixSocketPath = "/run/s"
                $0.proxy = .url("http://proxy.test")
            }
            #expect(Set(found).count == 1 && found[0].isNumeric)
        }

        @Test func `requests without TLS use the proxy's slot pool, and tunnels use their host's`() throws {
            let urls = ["http://a.test", "http://b.test:81", "https://a.test", "http://spared.test", "http://c.test"]
            let found = try places(of: urls) {
                $0.proxy = .url("http://user:word@Proxy.test:3128/", exceptions: ["spared.test"])
                $0.addressOverrides = ["c.test:80": "1.2.3.4:80"]
            }
            #expect(
                found.map(\.name)
                    == ["proxy.test:3128", "proxy.test:3128", "a.test:443", "spared.test:80", "1.2.3.4:80"])
            // The name of the proxy is looked up.
            #expect(found.allSatisfy { !$0.isNumeric })
            for (url, name) in [
                ("1.2.3.4", "1.2.3.4:1080"), ("https://1.2.3.4", "1.2.3.4:443"), ("http://[::1]", "::1:1080"),
                ("socks5h://1.2.3.4:1", "a.test:80"),
            ] {
                let place = try #require(try places(of: ["http://a.test"]) { $0.proxy = .url(url) }.first)
                #expect(place.name == name && place.isNumeric)
            }
        }

        @Test func `environment variables set proxies as they do for libcurl`() throws {
            let urls = ["http://a.test", "https://a.test"]
            let proxy = "http://1.2.3.4:3128"
            #expect(
                try names(of: urls, ["http_proxy": proxy, "https_proxy": proxy]) == ["1.2.3.4:3128", "a.test:443"])
            #expect(try places(of: urls, ["HTTPS_PROXY": proxy]).map(\.isNumeric) == [false, true])
            #expect(try places(of: urls, ["ALL_PROXY": proxy]).map(\.isNumeric) == [true, true])
            for environment in [
                [:], ["HTTP_PROXY": proxy], ["http_proxy": ""], ["http_proxy": proxy, "no_proxy": "*"],
                ["http_proxy": proxy, "NO_PROXY": "b.test, .A.test"],
            ] { #expect(try names(of: urls, environment) == ["a.test:80", "a.test:443"], "\(environment)") }
            #expect(try names(of: urls, ["http_proxy": proxy]) { $0.proxy = .none } == ["a.test:80", "a.test:443"])
            #expect(
                try names(of: urls, ["http_proxy": proxy, "no_proxy": "a.test"]) { $0.proxy = .url("p:1") }
                    == ["p:1", "a.test:443"])
        }

        @Test(
            arguments: [
                ("a.test", "http://x.a.test", true), ("a.test", "http://xa.test", false),
                ("10.0.0.0/8", "http://10.1.2.3", true), ("10.0.0.0/8", "http://11.1.2.3", false),
                ("10.0.0.1", "http://10.0.0.1", true), ("10.0.0.1", "http://10.0.0.10", false),
                ("fd00::/9", "http://[fd7f::1]", true), ("fd00::/9", "http://[fd80::1]", false),
                ("10.0.0.0/99", "http://10.0.0.0", false), ("/", "http://10.0.0.0", false),
                ("a.test.", "http://a.test", true),
            ])
        func `excepted hosts bypass the proxy`(_ list: String, _ url: String, _ isSpared: Bool) throws {
            let name = try names(of: [url]) { $0.proxy = .url("http://proxy:1", exceptions: [list]) }
            #expect((name != ["proxy:1"]) == isSpared)
        }

        @Test func `more hosts than the cache can hold are still identified correctly`() throws {
            let urls = (0..<3_000).map { "http://h\($0 % 1_500).test" }
            #expect(try names(of: urls) == (0..<3_000).map { "h\($0 % 1_500).test:80" })
        }
    }
#endif
