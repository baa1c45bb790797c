// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if os(Linux) || os(macOS)
    import Foundation
    import OperationCore
    import OperationTestKit
    import Testing

    /// A program that runs beside the tests, and its output.
    struct ProbeProgram: Sendable {
        private let number: Int32
        private let output = Output()

        /// The output so far, and the callers that wait for a part of it.
        private final class Output: Sendable {
            private struct State {
                var bytes: [UInt8] = []
                var isEnded = false
                var waiting: [(count: Int, gate: Gate)] = []
            }

            private let state = Locked(State())

            var text: String { state.withLock { String(decoding: $0.bytes, as: UTF8.self) } }

            func add(_ data: Data) { change { $0.bytes += data } }

            func end() { change { $0.isEnded = true } }

            /// Returns a gate that opens with this number of bytes, or at the end.
            func gate(_ count: Int) -> Gate {
                let gate = Gate()
                change { $0.waiting.append((count, gate)) }
                return gate
            }

            private func change(_ body: (inout State) -> Void) {
                let passed = state.withLock { state in
                    body(&state)
                    let (isEnded, count) = (state.isEnded, state.bytes.count)
                    let passed = state.waiting.filter { isEnded || count >= $0.count }
                    state.waiting.removeAll { isEnded || count >= $0.count }
                    return passed
                }
                for (_, gate) in passed { gate.open() }
            }
        }

        init(_ name: String, _ arguments: [String]) throws {
            let process = Process(), pipe = Pipe(), exit = DispatchSemaphore(value: 0)
            let executable: URL = try #require(Self.url(name), "\(name) was not built beside the tests.")
            process.executableURL = executable
            process.arguments = arguments
            process.standardInput = FileHandle.nullDevice
            process.standardOutput = pipe
            process.standardError = FileHandle.nullDevice
            process.terminationHandler = { _ in exit.signal() }
            try process.run()
            number = process.processIdentifier
            Thread { [output] in
                while case let data = pipe.fileHandleForReading.availableData, !data.isEmpty { output.add(data) }
                exit.wait()
                output.end()
            }.start()
        }

        func kill() { _ = Foundation.kill(number, SIGKILL) }

        /// Waits until the program has printed this number of bytes, or has ended.
        func printed(_ count: Int) async { await output.gate(count).passage() }

        /// Waits for the end of the program, and returns its output.
        func ended() async -> String {
            await output.gate(.max).passage()
            return output.text
        }

        /// The executable, which is in the folder of the test bundle.
        static func url(_ name: String) -> URL? {
            let bundles = Bundle.allBundles.map(\.bundleURL).filter { $0.pathExtension == "xctest" }
            let executables = [Bundle.main.executableURL, CommandLine.arguments.first.map(URL.init(fileURLWithPath:))]
            let folders =
                (bundles + executables.compactMap { $0 }).map { $0.deletingLastPathComponent() } + [
                    Bundle.main.bundleURL
                ]
            return folders.map { $0.appendingPathComponent(name) }
                .first { FileManager.default.isExecutableFile(atPath: $0.path) }
        }
    }
#endif
