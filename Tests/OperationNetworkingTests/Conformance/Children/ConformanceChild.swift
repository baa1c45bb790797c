// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if canImport(FoundationNetworking)
    import Foundation

    /// A child process that runs cases of the conformance suite, so that a crash does not end the tests.
    struct ConformanceChild {
        private static let variable = "OPERATIONKIT_CONFORMANCE_CHILD"
        private static let mark = "conformance: "
        /// How many seconds a child may be silent.
        private static let patience = 30

        /// The numbers of the cases that this process runs, if it is a child.
        static let numbers: [Int]? = ProcessInfo.processInfo.environment[variable]
            .map { $0.split(separator: ",").compactMap { Int($0) } }

        static func say(_ text: String) {
            FileHandle.standardOutput.write(Data("\(mark)\(text)\n".utf8))
        }

        /// Runs the cases in child processes.
        ///
        /// A child that crashes or hangs ends with one case; the next runs the rest.
        ///
        /// This function blocks.
        static func outcomes(of numbers: [Int]) throws -> [Int: ConformanceOutcome] {
            var outcomes: [Int: ConformanceOutcome] = [:]
            var rest = numbers[...]
            while !rest.isEmpty {
                let before = rest.count
                let (ended, lost) = try run(Array(rest))
                outcomes.merge(ended) { $1 }
                if let lost { outcomes[lost.number] = lost.outcome }
                rest = rest.drop { outcomes[$0] != nil }
                // A child that does not even begin a case makes further attempts pointless.
                if rest.count == before { break }
            }
            return outcomes
        }

        private typealias Lost = (number: Int, outcome: ConformanceOutcome)

        private static func run(_ numbers: [Int]) throws -> (ended: [Int: ConformanceOutcome], lost: Lost?) {
            let process = Process(), pipe = Pipe()
            // This folder removes the files that a crashed process leaves behind.
            let folder = FileManager.default.temporaryDirectory.appendingPathComponent("child-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
            process.arguments = arguments
            var environment = ProcessInfo.processInfo.environment
            environment[variable] = numbers.map(String.init).joined(separator: ",")
            environment["SWIFT_BACKTRACE"] = "enable=no"
            environment["TMPDIR"] = folder.path
            // The cases run as many rounds as in CI.
            environment["OPERATIONKIT_SOAK"] = nil
            process.environment = environment
            process.standardInput = FileHandle.nullDevice
            process.standardOutput = pipe
            process.standardError = FileHandle.nullDevice
            try process.run()
            var lines = LineReader(pipe.fileHandleForReading.fileDescriptor)
            var ended: [Int: ConformanceOutcome] = [:]
            var begun: Int?
            while let line = lines.next(seconds: patience) {
                let words = line.split(separator: " ", maxSplits: 3)
                guard line.hasPrefix(mark), words.count > 2, let number = Int(words[2]) else { continue }
                if words[1] == "begin" {
                    begun = number
                } else if words.count == 4 {
                    begun = nil
                    ended[number] = ConformanceOutcome(line: words[3])
                }
            }
            if !lines.isAtEnd { kill(process.processIdentifier, SIGKILL) }
            process.waitUntilExit()
            return (ended, begun.map { ($0, lines.isAtEnd ? .crashed : .hung) })
        }

        /// The arguments of this process, with another filter.
        private static var arguments: [String] {
            var arguments: [String] = []
            var rest = CommandLine.arguments.dropFirst()
            while let argument = rest.popFirst() {
                if ["--filter", "--skip", "--xunit-output", "--event-stream-output-path"].contains(argument) {
                    rest = rest.dropFirst()
                } else {
                    arguments.append(argument)
                }
            }
            return arguments + ["--filter", "ConformanceChildTests"]
        }
    }

    /// Reads lines from a descriptor, with a timeout for each line.
    private struct LineReader {
        private let descriptor: Int32
        private var buffer: [UInt8] = []
        private(set) var isAtEnd = false

        init(_ descriptor: Int32) { self.descriptor = descriptor }

        /// Returns the next line, or `nil` at the end or after the timeout.
        mutating func next(seconds: Int) -> String? {
            while true {
                if let end = buffer.firstIndex(of: 0x0A) {
                    defer { buffer.removeSubrange(...end) }
                    return String(decoding: buffer[..<end], as: UTF8.self)
                }
                var state = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                let ready = poll(&state, 1, Int32(seconds * 1_000))
                if ready < 0, errno == EINTR { continue }
                guard ready > 0 else { return nil }
                var bytes = [UInt8](repeating: 0, count: 4_096)
                let count = read(descriptor, &bytes, bytes.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else {
                    isAtEnd = true
                    return nil
                }
                buffer += bytes[..<count]
            }
        }
    }
#endif
