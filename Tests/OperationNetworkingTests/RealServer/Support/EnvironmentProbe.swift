// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationTestKit
    import Testing

    /// A program of its own that asks for a URL, in an environment of its own.
    enum EnvironmentProbe {
        /// What it prints: the status and the body, or the kind of the error.
        ///
        /// - Parameter launcher: What starts it, if not this process.
        static func run(
            _ arguments: [String], environment: [String: String] = [:], by launcher: [String] = []
        ) async throws -> String {
            let probe = try #require(ProbeProgram.url("EnvironmentProbe"), "EnvironmentProbe was not built.")
            let command = launcher + [probe.path] + arguments
            var variables = ProcessInfo.processInfo.environment.filter { !$0.key.lowercased().hasSuffix("_proxy") }
            variables.merge(environment) { $1 }
            let settings = variables
            return try await TestThread.run {
                let process = Process(), output = Pipe()
                process.executableURL = URL(fileURLWithPath: command[0])
                process.arguments = Array(command.dropFirst())
                process.environment = settings
                process.standardOutput = output
                try process.run()
                let text = output.fileHandleForReading.readDataToEndOfFile()
                process.waitUntilExit()
                return String(decoding: text, as: UTF8.self).trimmingCharacters(in: .newlines)
            }
        }
    }
#endif
