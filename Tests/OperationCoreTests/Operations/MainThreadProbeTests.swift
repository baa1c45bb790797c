// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if os(Linux) || os(macOS)
    import Foundation
    import OperationCore
    import OperationTestKit
    import Testing

    /// Waiting on the main thread of a program without a main loop, tested in a separate program.
    @Suite(.timeLimit(.minutes(3)))
    struct MainThreadProbeTests {
        @Test(arguments: [
            "callbacks", "on-main", "main-waits-first", "main-waits-second", "nested", "inside", "many", "dependency",
            "cancelled", "dispatch-main",
        ])
        func `waiting on the main thread never blocks indefinitely`(scenario: String) async throws {
            let run = try await TestThread.run { try Self.play(scenario) }
            #expect(run.output == "OK\n")
            #expect(run.status == 0)
        }

        @Test func `the probe rejects an unknown scenario`() async throws {
            let run = try await TestThread.run { try Self.play("no such thing") }
            #expect(run.status == 2)
        }

        private struct Run: Sendable {
            var output: String
            var status: Int32
        }

        @available(*, noasync)
        private static func play(_ scenario: String) throws -> Run {
            let process = Process(), pipe = Pipe()
            let executable: URL = try #require(probe, "MainThreadProbe was not found next to the tests.")
            process.executableURL = executable
            process.arguments = [scenario]
            process.standardOutput = pipe
            let ended = DispatchSemaphore(value: 0)
            process.terminationHandler = { _ in ended.signal() }
            try process.run()
            // A program that blocks is killed after 20 seconds, so its output lacks the OK.
            let watchdog = DispatchSource.makeTimerSource()
            let id = process.processIdentifier
            watchdog.setEventHandler { kill(id, SIGKILL) }
            watchdog.schedule(deadline: .now() + 20)
            watchdog.activate()
            let output = pipe.fileHandleForReading.readDataToEndOfFile()
            ended.wait()
            watchdog.cancel()
            return Run(output: String(bytes: output, encoding: .utf8) ?? "", status: process.terminationStatus)
        }

        /// The executable, which is next to the test bundle.
        private static let probe: URL? = {
            let bundles = Bundle.allBundles.map(\.bundleURL).filter { $0.pathExtension == "xctest" }
            let executables = [Bundle.main.executableURL, CommandLine.arguments.first.map(URL.init(fileURLWithPath:))]
            let folders =
                (bundles + executables.compactMap { $0 }).map { $0.deletingLastPathComponent() } + [
                    Bundle.main.bundleURL
                ]
            return folders.map { $0.appendingPathComponent("MainThreadProbe") }
                .first { FileManager.default.isExecutableFile(atPath: $0.path) }
        }()
    }
#endif
