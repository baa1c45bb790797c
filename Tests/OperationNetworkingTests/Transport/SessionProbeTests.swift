// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if os(Linux)
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.timeLimit(.minutes(3)))
    struct SessionProbeTests {
        /// Which timer the kernel has running for our end of a connection to that port: 2 is the one of its probes.
        private static func timer(ofConnectionTo port: Int) -> String? {
            let wanted = String(port, radix: 16, uppercase: true)
            for table in ["/proc/self/net/tcp", "/proc/self/net/tcp6"] {
                for line in ((try? String(contentsOfFile: table, encoding: .utf8)) ?? "").split(separator: "\n") {
                    let columns = line.split(separator: " ")
                    guard columns.count > 5, columns[2].hasSuffix(":" + wanted), columns[3] == "01" else { continue }
                    return String(columns[5].prefix(2))
                }
            }
            return nil
        }

        @Test(arguments: SessionKind.allCases)
        func `the system sees to it that a server which is gone without a word is noticed`(kind: SessionKind)
            async throws
        {
            let bench = try Bench(kind)
            defer { bench.closeSession() }
            bench.server.route("GET", "/") { _ in
                LoopbackAnswer(.head(200, ["Content-Length": "10"]), .send("01234"), .stallForever)
            }
            let stream = try await bench.session.stream(NetworkRequest(url: bench.server.url("/")))
            let port = try #require(bench.server.url("/").port)
            // What was just sent may have another timer for a moment.
            try await TestThread.run {
                let start = ContinuousClock.now
                while Self.timer(ofConnectionTo: port) != "02", start.duration(to: .now) < .seconds(20) { sched_yield() }
            }
            #expect(Self.timer(ofConnectionTo: port) == "02")
            withExtendedLifetime(stream) {}
        }
    }
#endif
