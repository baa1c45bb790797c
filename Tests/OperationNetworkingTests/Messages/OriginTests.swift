// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import Testing

/// Each spelling of a URL has the same origin in all parts of the library.
@Suite(.timeLimit(.minutes(3)))
struct OriginTests {
    /// A URL and its origin.
    private struct Spelling {
        let text: String
        let origin: String
    }

    private static let schemes = [
        ("http", "http"), ("https", "https"), ("HTTP", "http"), ("HttpS", "https"), ("https", "https"),
        ("Http", "http"),
    ]
    private static let users = ["", "", "user@", "user:pw@", ":pw@", "@", "u%40v:p%3Aq@", "b%C3%BCcher.example:80@"]
    private static let ports = ["", "", ":", ":8080", ":usual", ":0usual", ":08080", ":other", ":65535"]
    private static let tails = ["", "/", "/a?b=c#d", "?q", "#f", "/x@y:z", "?u@v:w/", "/a%2Fb", "/#x@y", "#@h:1/"]

    /// Combines each spelling of each host with different schemes, users, ports and paths.
    private static let spellings = HostSpellings.same.flatMap { host, others in
        ([host] + others).enumerated().flatMap { number, text in
            (0..<60).map { turn in
                let (written, scheme) = schemes[turn % schemes.count]
                let usual = scheme == "http" ? "80" : "443"
                let port = ports[(turn + number) % ports.count]
                    .replacing("usual", with: usual).replacing("other", with: scheme == "http" ? "443" : "80")
                let user = users[(turn / 3 + number) % users.count], tail = tails[(turn / 2 + number) % tails.count]
                let value = Int(port.dropFirst()).map(String.init) ?? usual
                return Spelling(
                    text: "\(written)://\(user)\(text)\(port)\(tail)",
                    origin: "\(scheme)://\(host)" + (value == usual ? "" : ":\(value)"))
            }
        }
    }

    @Test func `there are enough spellings`() {
        #expect(HostSpellings.same.reduce(0) { $0 + $1.spellings.count + 1 } > 100)
        #expect(Set(Self.spellings.map(\.text)).count > 4_000)
    }

    @Test func `all parts of the library find the same origin for a URL`() throws {
        for spelling in Self.spellings {
            let url = try #require(URL(string: spelling.text), "\(spelling.text)")
            let request = try NetworkRequest(url: url)
            let address = try #require(WebAddress(url), "\(spelling.text)")
            let found = [
                request.origin.name, RequestOrigin(of: url)?.name, RequestOrigin(of: request.url)?.name,
                RequestOrigin(ofPlain: request.url.absoluteString)?.name ?? request.origin.name,
                WebOrigin(url)?.description, WebOrigin(request.url)?.description, address.origin.description,
                Hop(request).address.origin.description,
            ]
            #expect(found.allSatisfy { $0 == spelling.origin }, "\(spelling.text): \(found)")
            #expect(address.resource.hasPrefix(spelling.origin + "/"), "\(spelling.text)")
            // The address of a checked request needs no parser in most cases, and is the same as with the parser.
            #expect(Hop(request).address == WebAddress(request.url), "\(spelling.text)")
            #expect(RequestSummary(method: "GET", url: url).url.hasPrefix(spelling.origin), "\(spelling.text)")
        }
    }

    @Test func `the URL that is sent begins with its origin`() throws {
        for spelling in Self.spellings {
            let request = try NetworkRequest(url: try #require(URL(string: spelling.text)))
            let text = request.url.absoluteString
            #expect(text.hasPrefix(spelling.origin), "\(spelling.text)")
            let next = text.dropFirst(spelling.origin.count).first
            #expect(next == nil || next == "/" || next == "?", "\(spelling.text): \(text)")
            // Converting the URL again does not change it.
            #expect(try NetworkRequest(url: request.url).url.absoluteString == text)
            let place = request.origin.place
            let zone = place.zone.map { "%25\($0)" } ?? ""
            let host = place.host.contains(":") ? "[\(place.host)\(zone)]" : place.host
            let scheme = request.origin.isSecure ? "https" : "http"
            let rest = spelling.origin.dropFirst("\(scheme)://\(host)".count)
            #expect(spelling.origin.hasPrefix("\(scheme)://\(host)"), "\(spelling.text): \(place)")
            #expect((rest.isEmpty ? (scheme == "http" ? ":80" : ":443") : String(rest)) == ":\(place.port)")
        }
    }

    @Test func `a cookie of an origin is sent to each spelling of the origin`() throws {
        for (host, others) in HostSpellings.same {
            let jar = CookieJar()
            jar.receive(["a=b"], from: try #require(URL(string: "http://\(host)/")))
            for text in [host] + others {
                #expect(jar.header(for: try #require(URL(string: "HTTP://u:p@\(text):80/#f"))) == "a=b", "\(text)")
            }
        }
    }

    @Test func `a trailing dot makes a host name a different origin with its own cookies`() throws {
        let urls = try ["https://api.example/", "https://api.example./"].map { try #require(URL(string: $0)) }
        #expect(Set(urls.map { WebOrigin($0)?.description }) == ["https://api.example", "https://api.example."])
        #expect(Set(urls.map { RequestOrigin(of: $0)?.name }).count == 2)
        for (here, there) in [(urls[0], urls[1]), (urls[1], urls[0])] {
            let jar = CookieJar()
            jar.receive(["a=b", "c=d; Domain=example", "e=f; Domain=example."], from: here)
            #expect(jar.header(for: here) == "a=b" && jar.header(for: there) == nil)
        }
    }

    @Test(arguments: HostSpellings.refused) func `an invalid host is rejected everywhere`(host: String) throws {
        for text in ["http://\(host)/", "HTTPS://u:p@\(host):8443/a#b", "http://\(host)"] {
            // Foundation rejects some of these hosts itself.
            guard let url = URL(string: text) else { continue }
            #expect(throws: NetworkError.self, "\(url)") { try NetworkRequest(url: url) }
            #expect(RequestOrigin(of: url) == nil && WebOrigin(url) == nil && WebAddress(url) == nil, "\(url)")
        }
    }

    #if OPERATIONKIT_LIBCURL
        private static let parser = CurlURLParser()

        @Test(.enabled(if: parser != nil)) func `libcurl reads each URL like OperationKit`() throws {
            let parser = try #require(Self.parser)
            var compared = 0
            for spelling in Self.spellings {
                let request = try NetworkRequest(url: try #require(URL(string: spelling.text)))
                // libcurl sends the request to the origin.
                let place = try #require(parser.place(of: request.url.absoluteString), "\(request.url)")
                #expect(place == parser.place(of: spelling.origin), "\(spelling.text)")
                let own = request.origin.place
                #expect(place.port == "\(own.port)" && place.zone == own.zone ?? "", "\(spelling.text): \(place)")
                #expect(place.scheme == (request.origin.isSecure ? "https" : "http"))
                // The original spelling leads to the same host.
                guard let written = parser.place(of: spelling.text) else { continue }
                compared += 1
                #expect(written == place, "\(spelling.text)")
            }
            #expect(compared > Self.spellings.count * 3 / 4, "of \(Self.spellings.count) only \(compared)")
        }

        @Test(.enabled(if: parser != nil)) func `different origins are different hosts or ports for libcurl`() throws {
            let parser = try #require(Self.parser)
            let origins = Set(Self.spellings.map(\.origin))
            #expect(Set(origins.compactMap { parser.place(of: $0) }).count == origins.count)
        }
    #endif
}
