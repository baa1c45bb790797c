// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation

    /// A program that ends on request, and in any case when this process ends or crashes.
    ///
    /// A shell waits for the end of a pipe and then ends the program.
    final class GuardedProgram: Sendable {
        private static let script = """
            cat
            kill -"$3" "$1"
            if [ -e "$2/litter" ]; then
                for turn in 1 2 3 4 5 6 7 8; do kill -0 "$1" && sleep 0.1; done
                rm -rf "$2"
            fi
            """

        private let program = Process()
        private let guardian = Process()
        private let input = Pipe()

        /// Starts the program.
        ///
        /// - Parameters:
        ///   - litter: A folder that is removed when the program has ended, if it contains a file named `litter`.
        ///   - signal: The signal that ends the program. Most signals are blocked unless the program unblocks them.
        init(_ path: String, _ arguments: [String], removing litter: URL? = nil, endingBy signal: String = "KILL")
            throws
        {
            try Self.run(program, path, arguments, FileHandle.nullDevice)
            let words = ["-c", Self.script, "sh", "\(program.processIdentifier)", litter?.path ?? "/nowhere", signal]
            try Self.run(guardian, "/bin/sh", words, input)
        }

        private static func run(_ process: Process, _ path: String, _ arguments: [String], _ input: Any) throws {
            process.executableURL = URL(fileURLWithPath: path)
            process.arguments = arguments
            process.standardInput = input
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            try process.run()
        }

        deinit {
            try? input.fileHandleForWriting.close()
        }

        var isRunning: Bool { program.isRunning }

        /// Waits until the program has ended for another reason.
        func waitForEnd() { program.waitUntilExit() }

        /// Ends the program and waits for its end.
        func end() {
            try? input.fileHandleForWriting.close()
            program.waitUntilExit()
            guardian.waitUntilExit()
        }
    }
#endif
