// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationTestKit
    import Testing

    /// A separate program that requests a URL in its own environment.
    enum EnvironmentProbe {
        /// Runs the program and returns its output: the status and the body, or the error code.
        ///
        /// - Parameter launcher: A command that starts the program. If it is empty, this process starts it.
        static func run(
            _ arguments: [String], environment: [String: String] = [:], by launcher: [String] = []
        ) async throws -> String {
            let probe = try #require(ProbeProgram.url("EnvironmentProbe"), "EnvironmentProbe was not built.")
            let command = launcher + [probe.path] + arguments
            var variables = ProcessInfo.processInfo.environment.filter { !$0.key.lowercased().hasSuffix("_proxy") }
            variables.merge(environment) { $1 }
            let settings = variables
            return try await TestThread.run {
                try Process.end(of: command[0], Array(command.dropFirst()), in: settings).output
                    .trimmingCharacters(in: .newlines)
            }
        }
    }
#endif
