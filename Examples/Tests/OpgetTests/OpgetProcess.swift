// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import Synchronization

/// A run of the program that was built beside the tests, with its output in pipes or in a terminal.
final class OpgetProcess: Sendable {
    /// What came of it.
    struct End: Sendable {
        let status: Int32
        let output: String
        let errors: String
    }

    private struct State {
        var output: [UInt8] = []
        var errors: [UInt8] = []
        var openStreams = 0
        var status: Int32?
        var waiters: [@Sendable () -> Void] = []
    }

    private let process = Mutex(Process())
    private let state = Mutex(State())

    /// Where the program is: beside the tests.
    static let path: String = {
        let own = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        return own.deletingLastPathComponent().appending(path: "opget").path
    }()

    /// Starts it.
    ///
    /// - Parameters:
    ///   - columns: How wide the terminal is that it writes to; it writes to pipes if nil.
    ///   - shell: What a shell does before, such as setting a limit.
    ///   - input: What it reads.
    init(_ arguments: [String], columns: Int? = nil, shell: String? = nil, input: String? = nil) throws {
        var environment = ProcessInfo.processInfo.environment.filter { !$0.key.lowercased().hasSuffix("_proxy") }
        environment.merge(["TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "NO_COLOR": ""]) { $1 }
        let command = ([Self.path] + arguments).map { "'\($0.replacing("'", with: "'\\''"))'" }.joined(separator: " ")
        let (outputHandle, outputEnd) = try Self.stream(nil)
        let (errorHandle, errorEnd) = try Self.stream(columns)
        let inputPipe = Pipe()
        state.withLock { $0.openStreams = 2 }
        try process.withLock { process in
            process.executableURL = URL(fileURLWithPath: "/bin/sh")
            process.arguments = ["-c", "\(shell.map { "\($0); " } ?? "")exec \(command)"]
            process.environment = environment
            process.standardInput = inputPipe
            process.standardOutput = outputEnd
            process.standardError = errorEnd
            process.terminationHandler = { [self] in
                note(status: $0.terminationReason == .exit ? $0.terminationStatus : -$0.terminationStatus)
            }
            try process.run()
        }
        try? outputEnd.close()
        try? errorEnd.close()
        read(outputHandle) { $0.output += $1 }
        read(errorHandle) { $0.errors += $1 }
        try inputPipe.fileHandleForWriting.write(contentsOf: Data((input ?? "").utf8))
        try inputPipe.fileHandleForWriting.close()
    }

    /// Two ends: of a pipe, or of a terminal of so many columns.
    private static func stream(_ columns: Int?) throws -> (FileHandle, FileHandle) {
        guard let columns else {
            let pipe = Pipe()
            return (pipe.fileHandleForReading, pipe.fileHandleForWriting)
        }
        var (master, end): (Int32, Int32) = (-1, -1)
        var size = winsize(ws_row: 24, ws_col: UInt16(columns), ws_xpixel: 0, ws_ypixel: 0)
        guard openpty(&master, &end, nil, nil, &size) == 0 else { throw POSIXError(.ENODEV) }
        return (
            FileHandle(fileDescriptor: master, closeOnDealloc: true),
            FileHandle(fileDescriptor: end, closeOnDealloc: true)
        )
    }

    private func read(_ handle: FileHandle, _ take: @escaping @Sendable (inout State, ArraySlice<UInt8>) -> Void) {
        let thread = Thread { [self] in
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while true {
                let count = Foundation.read(handle.fileDescriptor, &buffer, buffer.count)
                // The end of a terminal is an error.
                guard count > 0 else { break }
                change { take(&$0, buffer[..<count]) }
            }
            change { $0.openStreams -= 1 }
        }
        thread.start()
    }

    private func note(status: Int32) { change { $0.status = status } }

    private func change(_ body: (inout State) -> Void) {
        let waiters = state.withLock { state in
            body(&state)
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter() }
    }

    /// Waits until it wrote something, or ended.
    private func until(_ isReached: @Sendable (State) -> Bool) async {
        while true {
            let isDone = await withCheckedContinuation { (continuation: CheckedContinuation<Bool, Never>) in
                let isReached = state.withLock { state in
                    if isReached(state) { return true }
                    state.waiters.append { continuation.resume(returning: false) }
                    return false
                }
                if isReached { continuation.resume(returning: true) }
            }
            if isDone { return }
        }
    }

    /// Waits until a text stands on one of its outputs; false if it ended before.
    @discardableResult
    func wrote(_ text: String) async -> Bool {
        @Sendable func has(_ state: State) -> Bool {
            String(decoding: state.output, as: UTF8.self).contains(text)
                || String(decoding: state.errors, as: UTF8.self).contains(text)
        }
        await until { has($0) || ($0.status != nil && $0.openStreams == 0) }
        return state.withLock { has($0) }
    }

    /// Sends it a signal.
    func send(_ signal: Int32) { process.withLock { _ = kill($0.processIdentifier, signal) } }

    /// Waits for its end.
    func end() async -> End {
        await until { $0.status != nil && $0.openStreams == 0 }
        return state.withLock { state in
            End(
                status: state.status ?? -1, output: String(decoding: state.output, as: UTF8.self),
                errors: String(decoding: state.errors, as: UTF8.self))
        }
    }
}
