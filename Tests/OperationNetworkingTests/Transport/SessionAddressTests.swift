// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationCore
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// Tests hosts with an IPv6 address and an IPv4 address, as `localhost` has for libcurl.
    @Suite(.timeLimit(.minutes(3)))
    struct SessionAddressTests {
        /// Creates two servers at the same port, one for each kind of address.
        private func makePair(
            _ change: (inout LoopbackServer.Options) -> Void
        ) throws -> (six: LoopbackServer, four: LoopbackServer) {
            var problem: (any Error)?
            for _ in 0..<20 {
                var options = LoopbackServer.Options()
                options.addresses = [.ipv6]
                change(&options)
                let six = try LoopbackServer(options)
                options = LoopbackServer.Options()
                options.addresses = [.ipv4(port: six.port)]
                do { return (six, try LoopbackServer(options)) } catch { problem = error }
            }
            throw try #require(problem)
        }

        @Test func `if one address of a host does not respond, another one is used`() async throws {
            let (deaf, server) = try makePair {
                $0.accepts = false
                $0.backlog = 0
            }
            server.route("/") { .text($0["Host"] ?? "") }
            // These requests fill the backlog, so later connections receive no reply at all.
            let session = CurlSession.direct { $0.maximumConnectionsPerHost = 20 }
            let endless = TransferOptions(timeouts: .none)
            for _ in 0..<8 {
                let request = try NetworkRequest(url: deaf.url(), options: endless)
                session.makeTask(with: request, receiver: TransferRecorder()).resume()
            }
            let url = try #require(URL(string: "http://localhost:\(server.port)/"))
            let record = try await session.run(url)
            #expect(record.text == "localhost:\(server.port)", "\(String(describing: record.error))")
            #expect(record.metrics.first?.remoteAddress == "127.0.0.1:\(server.port)")
            session.close()
            await deaf.stopped()
            await server.stopped()
        }

        @Test func `if one address of a host refuses, another one is used`() async throws {
            let (six, server) = try makePair { _ in }
            await six.stopped()
            server.route("/") { _ in .text("hello") }
            let url = try #require(URL(string: "http://localhost:\(server.port)/"))
            #expect(try await CurlSession.direct().run(url).text == "hello")
            await server.stopped()
        }
    }
#endif
