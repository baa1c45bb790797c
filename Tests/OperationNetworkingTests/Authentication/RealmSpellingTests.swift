// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// The token of a realm is sent to each spelling of its hosts, and to no other host.
    @Suite("Realms and spellings of hosts", .timeLimit(.minutes(3)))
    struct RealmSpellingTests {
        private static let books = [
            "b\u{FC}cher.example", "B\u{DC}CHER.example", "b%C3%BCcher.example", "bu\u{308}cher.example",
            "xn--bcher-kva.example", "XN--Bcher-KVA.example",
        ]
        private static let numbers = ["127.0.0.1", "127.1", "2130706433", "0x7f.0.0.1", "%3127.0.0.1"]
        private static let six = ["[::1]", "[0:0::1]", "[0:0:0:0:0:0:0:1]", "[::0.0.0.1]"]
        private static let zone = ["[::1%25lo]", "[0:0::1%25lo]", "[::1%lo]"]

        private let server: LoopbackServer

        init() throws {
            let options = with(LoopbackServer.Options()) { $0.addresses = [.ipv4, .ipv6] }
            server = try LoopbackServer(options)
            server.route("/*") { .text($0["Authorization"] ?? "none") }
        }

        private func urls(_ host: String) throws -> [URL] {
            let place = "\(host):\(server.port)"
            return try [
                "http://\(place)/a", "http://\(place)/a#fragment", "HTTP://\(place)/a", "http://user:pw@\(place)/a?b",
                "hTTp://user@\(place)#f", "http://@\(place)/a%20b#", "http://\(host):0\(server.port)/",
            ].map { try #require(URL(string: $0), "\($0)") }
        }

        private func realm(_ token: String, at origins: [URL]?) -> Authenticator<String> {
            let options = with(AuthenticationOptions()) { $0.origins = origins }
            return Authenticator(token, options: options) { token, request in
                try request.with("Authorization", token)
            } refresh: { _ in
                token
            }
        }

        /// Checks each URL, where the hosts of one group have one realm and all other hosts have another realm.
        private func check(_ group: [String], against others: [String], over session: ExchangeSession) async throws {
            for (number, host) in group.enumerated() {
                // The realm is created with a different spelling each time.
                let origins = try urls(group[(number + 1) % group.count])
                let own = realm("own", at: [origins[number % origins.count]]), rest = realm("rest", at: nil)
                for (url, expected) in try urls(host).map({ ($0, "own") }) + others.flatMap(urls).map({ ($0, "rest") })
                {
                    let operation = NetworkDataOperation<String>(url: url, urlSession: session)
                    operation.authenticate(by: own)
                    operation.authenticate(by: rest)
                    #expect(try await operation.run() == expected, "\(url)")
                }
            }
        }

        @Test func `each spelling of a host gets the token of its realm only`() async throws {
            let port = server.port
            let transport = CurlSession.direct {
                $0.addressOverrides = ["B\u{FC}cher.example:\(port)": "127.0.0.1:\(port)"]
            }
            let session = ExchangeSession(over: transport)
            try await check(Self.books, against: ["127.0.0.1"], over: session)
            try await check(Self.numbers, against: [Self.books[0]], over: session)
            transport.close()
            await server.stopped()
        }

        @Test func `each spelling of an IPv6 address, with and without a zone, gets the token of its realm only`()
            async throws
        {
            let transport = CurlSession.direct()
            let session = ExchangeSession(over: transport)
            let port = server.addresses.last?.port ?? 0
            try #require(port == server.port)
            try await check(Self.six, against: [Self.zone[0]], over: session)
            try await check(Self.zone, against: [Self.six[0], "127.0.0.1"], over: session)
            transport.close()
            await server.stopped()
        }
    }
#endif
