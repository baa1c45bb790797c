// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import Synchronization

/// A program of the examples that runs beside the tests, in its own terminal or with a pipe for its output.
///
/// A test can wait for the output, which is read continuously. The program is killed when this object is released.
public final class ProgramRun: @unchecked Sendable {
    // Sendable: `Process` is not `Sendable` on Apple platforms, but is set up in `init` and may be used by any thread.

    /// The input and output of a program.
    public enum Place: Sendable {
        /// A terminal with this number of columns and rows.
        case terminal(columns: Int, rows: Int)
        /// A pipe instead of a terminal.
        case pipe
        /// A pipe for its output.
        ///
        /// The errors go to a terminal with this number of columns, or to another pipe if `nil`.
        case streams(columns: Int?)
    }

    /// The result of a program.
    public struct End: Sendable {
        /// The exit code.
        ///
        /// If a signal ended the program, this is 128 plus the number of the signal, as in a shell.
        public let status: Int32
        /// Whether a signal ended the program.
        public let isBySignal: Bool
        /// The output of the program.
        public let output: String
        /// The error output of the program, if it is separate.
        public let errors: String
    }

    /// The reason why a program did not run.
    public struct Failure: Error, CustomStringConvertible {
        /// The problem and its solution.
        public let description: String
    }

    private struct State {
        var bytes: [UInt8] = []
        var errors: [UInt8] = []
        var openStreams = 0
        /// Whether the wait for the program was given up.
        var isGivenUp = false
        var waiters: [(isReached: @Sendable (String, Bool) -> Bool, pass: @Sendable () -> Void)] = []

        /// The complete output, followed by the error output.
        var text: String { String(decoding: bytes, as: UTF8.self) + String(decoding: errors, as: UTF8.self) }
    }

    private let state = Mutex(State())
    private let process: Process
    private let exit = DispatchSemaphore(value: 0)
    /// Identifies all processes that the program started, in any process group.
    private let mark = UUID().uuidString
    private static let markName = "PROGRAM_RUN_MARK"

    /// Starts a program that was built together with the tests.
    ///
    /// - Parameters:
    ///   - input: The text that the program can read.
    ///   - shell: A closure that returns a script for the command, which may contain other commands.
    public init(
        _ name: String, _ arguments: [String] = [], in place: Place = .pipe, input: String? = nil,
        shell: ((String) -> String)? = nil
    ) throws {
        let process = Process()
        self.process = process
        let program = try Self.url(of: name)
        if let shell {
            let words = [program.path] + arguments
            let command = words.map { "'\($0.replacing("'", with: "'\\''"))'" }.joined(separator: " ")
            process.executableURL = URL(filePath: "/bin/sh")
            process.arguments = ["-c", shell(command)]
        } else {
            process.executableURL = program
            process.arguments = arguments
        }
        var environment = ProcessInfo.processInfo.environment.filter { !$0.key.lowercased().hasSuffix("_proxy") }
        environment["TERM"] = "xterm-256color"
        environment["LC_ALL"] = "C.UTF-8"
        environment["NO_COLOR"] = nil
        environment[Self.markName] = mark
        process.environment = environment
        let (reader, writer) = try Self.ends(place)
        let errors = try Self.errorEnds(place)
        let inputPipe = input.map { _ in Pipe() }
        process.standardInput = inputPipe ?? FileHandle.nullDevice
        process.standardOutput = writer
        process.standardError = errors?.writer ?? writer
        process.terminationHandler = { [exit] _ in exit.signal() }
        state.withLock { $0.openStreams = errors == nil ? 1 : 2 }
        Self.heedSignals
        try process.run()
        // From here on, only the program has the writer open, so its end is the end of the output.
        try writer.close()
        try errors?.writer.close()
        read(reader) { $0.bytes += $1 }
        if let errors { read(errors.reader) { $0.errors += $1 } }
        if let inputPipe, let input { Self.write(input, to: inputPipe.fileHandleForWriting) }
    }

    /// Writes the input as fast as the program reads it.
    ///
    /// A program that has ended needs no more input.
    private static func write(_ input: String, to writer: FileHandle) {
        Thread {
            // A broken pipe is an error here, and does not end the tests.
            var signals = sigset_t()
            sigemptyset(&signals)
            sigaddset(&signals, SIGPIPE)
            pthread_sigmask(SIG_BLOCK, &signals, nil)
            try? writer.write(contentsOf: Data(input.utf8))
            try? writer.close()
        }.start()
    }

    private func read(_ reader: FileHandle, _ take: @escaping @Sendable (inout State, ArraySlice<UInt8>) -> Void) {
        let thread = Thread { [weak self] in
            let descriptor = reader.fileDescriptor
            var buffer = [UInt8](repeating: 0, count: 1 << 14)
            while true {
                let count = Foundation.read(descriptor, &buffer, buffer.count)
                if count < 0, errno == EINTR { continue }
                // A terminal that no process has open any more reports an error.
                guard count > 0 else { break }
                self?.change { take(&$0, buffer.prefix(count)) }
            }
            self?.change { $0.openStreams -= 1 }
            try? reader.close()
        }
        thread.start()
    }

    deinit {
        if state.withLock({ $0.openStreams > 0 }) || process.isRunning { killAll() }
    }

    /// Kills the program and all processes that it started, in any process group.
    ///
    /// Reused process numbers are left alone.
    private func killAll() {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        let wanted = Data("\(Self.markName)=\(mark)".utf8)
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        for number in names.compactMap({ Int32($0) }) where number != getpid() {
            guard let environment = FileManager.default.contents(atPath: "/proc/\(number)/environ"),
                environment.range(of: wanted) != nil
            else { continue }
            kill(number, SIGKILL)
        }
    }

    /// The programs would inherit signals that are ignored by the parent of the tests, for example with `nohup`.
    private static let heedSignals: Void = {
        for number in [SIGINT, SIGTERM, SIGHUP, SIGTSTP] { signal(number, SIG_DFL) }
    }()

    /// The output so far, without separate errors.
    public var output: String { state.withLock { String(decoding: $0.bytes, as: UTF8.self) } }

    /// Waits until the program has written the text or has ended, and returns the output.
    @discardableResult
    public func output(with text: String) async -> String {
        await wait { $1 || $0.contains(text) }
        return output
    }

    /// Waits until the program has written the text this often, to its output or errors.
    ///
    /// Returns `false` if it ended before.
    @discardableResult
    public func wrote(_ text: String, times: Int = 1) async -> Bool {
        @Sendable func isThere(_ output: String) -> Bool { output.components(separatedBy: text).count > times }
        await wait { $1 || isThere($0) }
        return state.withLock { isThere($0.text) }
    }

    /// The process number.
    ///
    /// This is the number of the shell if the shell started the program without `exec`.
    public var identifier: Int32 { process.processIdentifier }

    /// Waits for the end of the program.
    public func end() async -> End {
        let status = await exitCode()
        let isBySignal = process.terminationReason == .uncaughtSignal
        return state.withLock { state in
            End(
                status: status, isBySignal: isBySignal, output: String(decoding: state.bytes, as: UTF8.self),
                errors: String(decoding: state.errors, as: UTF8.self))
        }
    }

    /// Sends a signal to the program.
    public func send(_ signal: Int32) {
        if process.isRunning { kill(process.processIdentifier, signal) }
    }

    /// Waits for the end of the program, and returns its exit code, which is 128 plus the number of a signal that ended
    /// it.
    public func exitCode() async -> Int32 {
        await wait { $1 }
        return await withCheckedContinuation { continuation in
            // The output has ended, so this takes only a moment.
            Thread { [self] in
                exit.wait()
                exit.signal()
                let status = process.terminationStatus
                continuation.resume(returning: process.terminationReason == .exit ? status : 128 + status)
            }.start()
        }
    }

    /// Waits for the condition.
    ///
    /// If the time of the test is over, the program is killed.
    private func wait(_ isReached: @escaping @Sendable (String, Bool) -> Bool) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                change { $0.waiters.append((isReached, { continuation.resume() })) }
            }
        } onCancel: {
            killAll()
            // A process that cannot be killed may hold the streams open, so the wait is given up.
            change { $0.isGivenUp = true }
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let passing = state.withLock { state in
            body(&state)
            let (text, isAtEnd) = (state.text, state.openStreams == 0 || state.isGivenUp)
            let passing = state.waiters.filter { $0.isReached(text, isAtEnd) }
            state.waiters.removeAll { $0.isReached(text, isAtEnd) }
            return passing
        }
        for waiter in passing { waiter.pass() }
    }

    /// The ends of the output for reading and for writing.
    private static func ends(_ place: Place) throws -> (reader: FileHandle, writer: FileHandle) {
        guard case .terminal(let columns, let rows) = place else {
            let pipe = Pipe()
            return (pipe.fileHandleForReading, pipe.fileHandleForWriting)
        }
        return try terminal(columns, rows)
    }

    /// The same for the errors, if they are separate.
    private static func errorEnds(_ place: Place) throws -> (reader: FileHandle, writer: FileHandle)? {
        guard case .streams(let columns) = place else { return nil }
        return try ends(columns.map { .terminal(columns: $0, rows: 24) } ?? .pipe)
    }

    private static func terminal(_ columns: Int, _ rows: Int) throws -> (reader: FileHandle, writer: FileHandle) {
        var (front, back): (Int32, Int32) = (-1, -1)
        var size = winsize(ws_row: UInt16(rows), ws_col: UInt16(columns), ws_xpixel: 0, ws_ypixel: 0)
        guard openpty(&front, &back, nil, nil, &size) == 0 else {
            throw Failure(description: "No pseudo-terminal is available (error \(errno)). Mount /dev/pts.")
        }
        // The program must not inherit the front end of the terminal.
        _ = fcntl(front, F_SETFD, FD_CLOEXEC)
        return (FileHandle(fileDescriptor: front, closeOnDealloc: false), FileHandle(fileDescriptor: back))
    }

    private static func url(of name: String) throws -> URL {
        let folder = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
        // On Apple platforms, the tests run in a bundle beside the programs.
        let folders = [folder, Bundle.main.bundleURL.deletingLastPathComponent()] + bundleFolders
        for folder in folders {
            let url = folder.appendingPathComponent(name)
            if FileManager.default.isExecutableFile(atPath: url.path) { return url }
        }
        throw Failure(description: "\(name) was not built beside the tests. Make it a dependency of the test target.")
    }

    private static var bundleFolders: [URL] {
        Bundle.allBundles.map { $0.bundleURL.deletingLastPathComponent() }
    }
}

extension ProgramRun {
    /// A script of a shell with job control, which is required for Ctrl-Z.
    ///
    /// It prints the number of the job, resumes the job when it was stopped, and prints its status.
    public static func goingOnAfterStop(_ command: String) -> String {
        """
        set -m
        \(command) &
        job=$!
        echo "job $job."
        turn=0
        until grep -q '^State:.T' /proc/$job/status; do
            turn=$((turn + 1))
            if [ $turn -gt 20000 ] || ! kill -0 $job; then kill -KILL $job; exit 9; fi
        done
        echo stopped
        kill -CONT $job
        wait $job
        echo "status $?"
        """
    }
}
