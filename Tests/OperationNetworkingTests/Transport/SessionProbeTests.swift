// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.timeLimit(.minutes(3)))
    struct SessionProbeTests {
        /// Returns the local socket of a connection to the port.
        private static func socket(connectedTo port: Int) -> Int32? {
            (Int32(3)..<4096).first { descriptor in
                var address = sockaddr_in()
                var length = socklen_t(MemoryLayout<sockaddr_in>.size)
                let result = withUnsafeMutablePointer(to: &address) { pointer in
                    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &length) }
                }
                return result == 0 && address.sin_family == AF_INET && Int(UInt16(bigEndian: address.sin_port)) == port
            }
        }

        private static func option(_ level: Int32, _ name: Int32, of socket: Int32) -> Int32 {
            var value: Int32 = -1
            var length = socklen_t(MemoryLayout<Int32>.size)
            getsockopt(socket, level, name, &value, &length)
            return value
        }

        @Test(arguments: SessionKind.allCases)
        func `connections use TCP keepalive to detect a server that disappeared`(kind: SessionKind)
            async throws
        {
            let bench = try Bench(kind)
            defer { bench.closeSession() }
            bench.server.route("GET", "/") { _ in
                LoopbackAnswer(.head(200, ["Content-Length": "10"]), .send("01234"), .stallForever)
            }
            let stream = try await bench.session.stream(NetworkRequest(url: bench.server.url("/")))
            let socket = try #require(Self.socket(connectedTo: Int(bench.server.port)))
            #expect(Self.option(SOL_SOCKET, SO_KEEPALIVE, of: socket) == 1)
            #expect(Self.option(Int32(IPPROTO_TCP), TCP_KEEPIDLE, of: socket) == 60)
            #expect(Self.option(Int32(IPPROTO_TCP), TCP_KEEPINTVL, of: socket) == 15)
            withExtendedLifetime(stream) {}
        }
    }
#endif
