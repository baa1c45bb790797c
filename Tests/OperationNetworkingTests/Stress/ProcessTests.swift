// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if os(Linux)
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// Tests sessions together with other processes.
    @Suite(.timeLimit(.minutes(2)))
    struct ProcessTests {
        // Under ThreadSanitizer, a forked child cannot create threads.
        #if !TSAN
            @Test func `a forked child gets sessionUnavailable from the session and can close it`() async throws {
                let server = try LoopbackServer()
                server.route("/") { _ in .text("hello") }
                let (output, status) = try await Fixture("SessionProbe").run("fork", server.url().absoluteString)
                #expect(
                    output == """
                        parent: 200
                        child: sessionUnavailable
                        child ended: 7
                        parent: 200

                        """)
                #expect(status == 0)
                await server.stopped()
            }
        #endif

        @Test func `programs started under load inherit no file descriptor of a session`() async throws {
            let server = try LoopbackServer()
            server.route("/") { _ in .text("hello") }
            let (output, status) = try await Fixture("SessionProbe").run("spawn", server.url().absoluteString)
            let lines = output.split(separator: "\n")
            #expect(lines.last == "done" && status == 0)
            let begin = try #require(lines.firstIndex(of: "begin"))
            func target(_ line: Substring) -> Substring { line.split(separator: " ").last ?? "" }
            let former = Set(lines[..<begin].map(target))
            let latter = lines[begin...].filter { $0.contains(" -> ") }
            #expect(latter.count { $0.contains("/proc/") } == 15, "\(output)")
            let leaks = latter.filter { line in
                ["socket:", "eventpoll", "eventfd", "probe-"].contains { line.contains($0) }
                    && !former.contains(target(line))
            }
            #expect(leaks.isEmpty, "\(leaks)")
            await server.stopped()
        }

        @Test func `writing to a reset connection does not kill the process`() async throws {
            let server = try LoopbackServer()
            server.routeEarly("/") { _ in LoopbackAnswer(.awaitBody(atLeast: 1_000)).followed(by: .reset) }
            let (output, status) = try await Fixture("SessionProbe").run("pipe", server.url().absoluteString)
            #expect(output == "survived: connectionLost\n" && status == 0, "\(output), \(status)")
            await server.stopped()
        }

        @Test func `requests end when descriptors run out, and succeed again when some are available`() async throws {
            let server = try LoopbackServer()
            server.route("/") { _ in .text("hello") }
            let (output, status) = try await Fixture("SessionProbe").run("descriptors", server.url().absoluteString)
            let lines = output.split(separator: "\n").map(String.init)
            #expect(lines.first == "before: 200 saved" && status == 0, "\(output)")
            #expect(lines.last == "after: [\"200\"] saved", "\(output)")
            #expect(lines.contains("a new session: resourcesExhausted"), "\(output)")
            #expect(lines.contains("the same session: 200"), "\(output)")
            // The server accepts connections all the time, so no error may blame the server.
            let allowed: Set = ["200", "saved", "resourcesExhausted", "transferFailed"]
            // In one round, all requests may reuse the connection that exists, one after another.
            #expect(lines.contains { $0.hasPrefix("with ") && $0.contains("resourcesExhausted") }, "\(output)")
            for left in 0...1 {
                for name in ["a name", "a body", "certificates"] {
                    #expect(lines.contains("\(name) with \(left): resourcesExhausted"), "\(output)")
                }
            }
            for line in lines where line.hasPrefix("with ") || line.hasPrefix("a file ") {
                let outcomes = line.split(separator: ":").last?.split(separator: " ").map(String.init) ?? []
                #expect(allowed.isSuperset(of: outcomes) && !outcomes.isEmpty, "\(line)")
            }
            await server.stopped()
        }
    }
#endif
