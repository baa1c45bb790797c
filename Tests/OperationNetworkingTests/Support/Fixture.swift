// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if os(Linux) || os(macOS)
    import Foundation
    import OperationTestKit
    import Testing

    /// A program that was built together with the tests.
    struct Fixture: Sendable {
        private let executable: URL

        init(_ name: String) throws {
            executable = try #require(ProbeProgram.url(name), "\(name) was not built beside the tests.")
        }

        /// Runs the program.
        ///
        /// Returns its output, and its status or the negative number of the signal that ended it.
        func run(_ arguments: String...) async throws -> (output: String, status: Int32) {
            let executable = executable
            return try await TestThread.run { try Process.end(of: executable.path, arguments) }
        }
    }

    extension Process {
        /// Runs a program, and blocks the calling thread until its end.
        ///
        /// Returns its output, or its error output instead, and its status or the negative number of the signal that ended
        /// it.
        static func end(
            of path: String, _ arguments: [String], in environment: [String: String]? = nil,
            readsErrors: Bool = false
        ) throws -> (output: String, status: Int32) {
            let process = Process(), pipe = Pipe()
            process.executableURL = URL(fileURLWithPath: path)
            process.arguments = arguments
            if let environment { process.environment = environment }
            process.standardInput = FileHandle.nullDevice
            if readsErrors {
                process.standardOutput = FileHandle.nullDevice
                process.standardError = pipe
            } else {
                process.standardOutput = pipe
                process.standardError = FileHandle.nullDevice
            }
            try process.run()
            let output = pipe.fileHandleForReading.readDataToEndOfFile()
            process.waitUntilExit()
            let isSignal = process.terminationReason == .uncaughtSignal
            return (
                String(decoding: output, as: UTF8.self),
                isSignal ? -process.terminationStatus : process.terminationStatus
            )
        }
    }
#endif
