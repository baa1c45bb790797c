// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import Synchronization

/// A program of the examples that runs beside the tests: in a terminal of its own, or with a pipe for its output.
///
/// What it writes is read all the time, and can be waited for. It is killed where nobody holds it any more.
public final class ProgramRun: @unchecked Sendable {
    // Sendable: `Process`, which is not marked so on Apple platforms, is set up in `init` and may be used by any thread.

    /// Where a program finds itself.
    public enum Place: Sendable {
        /// In a terminal of so many columns and rows.
        case terminal(columns: Int, rows: Int)
        /// With a pipe in the place of a terminal.
        case pipe
        /// With a pipe for its output, and for its errors a terminal of so many columns, or another pipe if nil.
        case streams(columns: Int?)
    }

    /// What came of a program.
    public struct End: Sendable {
        /// Its exit code: 128 and the signal's number where that ended it, as a shell shows it.
        public let status: Int32
        /// Whether a signal ended it.
        public let isBySignal: Bool
        /// What it wrote to its output.
        public let output: String
        /// What it wrote to its errors, if those were apart.
        public let errors: String
    }

    /// Why a program did not run.
    public struct Failure: Error, CustomStringConvertible {
        /// What is wrong, and what to do.
        public let description: String
    }

    private struct State {
        var bytes: [UInt8] = []
        var errors: [UInt8] = []
        var openStreams = 0
        /// Whether nobody waits for it any more.
        var isGivenUp = false
        var waiters: [(isReached: @Sendable (String, Bool) -> Bool, pass: @Sendable () -> Void)] = []

        /// All that was written, the errors last.
        var text: String { String(decoding: bytes, as: UTF8.self) + String(decoding: errors, as: UTF8.self) }
    }

    private let state = Mutex(State())
    private let process: Process
    private let exit = DispatchSemaphore(value: 0)
    /// By which all that it began can be told from other programs, wherever it went.
    private let mark = UUID().uuidString
    private static let markName = "PROGRAM_RUN_MARK"

    /// Starts a program that was built beside the tests.
    ///
    /// - Parameters:
    ///   - input: What it can read.
    ///   - shell: Makes a script of the command, in which other things happen, too.
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
        // From here on only the program has it, and its end is the end of what can be read.
        try writer.close()
        try errors?.writer.close()
        read(reader) { $0.bytes += $1 }
        if let errors { read(errors.reader) { $0.errors += $1 } }
        if let inputPipe, let input { Self.write(input, to: inputPipe.fileHandleForWriting) }
    }

    /// Hands it what it can read, as fast as it does; one that has ended needs nothing any more.
    private static func write(_ input: String, to writer: FileHandle) {
        Thread {
            // A broken pipe is an error here, and not the end of the tests.
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
                // A terminal that nobody has open any more is an error of its own.
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

    /// Kills it and all that it began, in whatever group: a number that somebody else may have by now is left alone.
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

    /// What whoever runs the tests ignores, as `nohup` does, the programs would ignore, too.
    private static let heedSignals: Void = {
        for number in [SIGINT, SIGTERM, SIGHUP, SIGTSTP] { signal(number, SIG_DFL) }
    }()

    /// All that it wrote so far, but for errors that are apart.
    public var output: String { state.withLock { String(decoding: $0.bytes, as: UTF8.self) } }

    /// Waits until it has written that, or has ended; returns all that it wrote.
    @discardableResult
    public func output(with text: String) async -> String {
        await wait { $1 || $0.contains(text) }
        return output
    }

    /// Waits until it has written that so often, to its output or its errors; false if it ended before.
    @discardableResult
    public func wrote(_ text: String, times: Int = 1) async -> Bool {
        @Sendable func isThere(_ output: String) -> Bool { output.components(separatedBy: text).count > times }
        await wait { $1 || isThere($0) }
        return state.withLock { isThere($0.text) }
    }

    /// Its number, which is the shell's where one began it and did not make way for it.
    public var identifier: Int32 { process.processIdentifier }

    /// Waits for its end.
    public func end() async -> End {
        let status = await exitCode()
        let isBySignal = process.terminationReason == .uncaughtSignal
        return state.withLock { state in
            End(
                status: status, isBySignal: isBySignal, output: String(decoding: state.bytes, as: UTF8.self),
                errors: String(decoding: state.errors, as: UTF8.self))
        }
    }

    /// Sends it a signal.
    public func send(_ signal: Int32) {
        if process.isRunning { kill(process.processIdentifier, signal) }
    }

    /// Waits for its end, and returns its exit code: 128 and the signal's number where that ended it.
    public func exitCode() async -> Int32 {
        await wait { $1 }
        return await withCheckedContinuation { continuation in
            // Its output has ended, so this takes a moment and no longer.
            Thread { [self] in
                exit.wait()
                exit.signal()
                let status = process.terminationStatus
                continuation.resume(returning: process.terminationReason == .exit ? status : 128 + status)
            }.start()
        }
    }

    /// Waits until that is so; where the test's time is over, the program is killed, and so comes to its end.
    private func wait(_ isReached: @escaping @Sendable (String, Bool) -> Bool) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                change { $0.waiters.append((isReached, { continuation.resume() })) }
            }
        } onCancel: {
            killAll()
            // Something may hold its streams that cannot be killed: nobody waits for that.
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

    /// Where what it writes can be read, and where it writes.
    private static func ends(_ place: Place) throws -> (reader: FileHandle, writer: FileHandle) {
        guard case .terminal(let columns, let rows) = place else {
            let pipe = Pipe()
            return (pipe.fileHandleForReading, pipe.fileHandleForWriting)
        }
        return try terminal(columns, rows)
    }

    /// The same for its errors, if they are apart.
    private static func errorEnds(_ place: Place) throws -> (reader: FileHandle, writer: FileHandle)? {
        guard case .streams(let columns) = place else { return nil }
        return try ends(columns.map { .terminal(columns: $0, rows: 24) } ?? .pipe)
    }

    private static func terminal(_ columns: Int, _ rows: Int) throws -> (reader: FileHandle, writer: FileHandle) {
        var (front, back): (Int32, Int32) = (-1, -1)
        var size = winsize(ws_row: UInt16(rows), ws_col: UInt16(columns), ws_xpixel: 0, ws_ypixel: 0)
        guard openpty(&front, &back, nil, nil, &size) == 0 else {
            throw Failure(description: "There is no pseudo-terminal to be had (error \(errno)). Mount /dev/pts.")
        }
        // The program shall not have our end of it, too.
        _ = fcntl(front, F_SETFD, FD_CLOEXEC)
        return (FileHandle(fileDescriptor: front, closeOnDealloc: false), FileHandle(fileDescriptor: back))
    }

    private static func url(of name: String) throws -> URL {
        let folder = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
        // On Apple's systems the tests run in a bundle beside the programs.
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
    /// A script of a shell that minds its jobs, for only there can Ctrl-Z stop anything: it says the number of the job, lets it
    /// go on when it was stopped, and says how it ended.
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
