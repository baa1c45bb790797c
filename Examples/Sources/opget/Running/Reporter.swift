// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore
import OperationNetworking
import Synchronization
import TerminalDisplay

/// A reporter that prints the progress for people and programs, and stores the result of each file.
final class Reporter: Sendable {
    private struct State {
        var rows: [Int] = []
        var results: [FileResult?] = []
        var begun: Set<Int> = []
        /// The number of bytes of each file that existed before the run, and the number of discarded bytes.
        var starts: [Int: Start] = [:]
        /// The highest progress of each file, so that a late report does not decrease the progress.
        var furthest: [Int: Int64] = [:]
        /// The time of the last progress event in the log, for each file in progress.
        var lastProgress: [Int: OperationInstant] = [:]
    }

    private struct Start {
        var inherited: Int64 = 0
        var discarded: Int64 = 0
    }

    let display: TerminalDisplay
    private let isQuiet: Bool
    private let state: Mutex<State>
    private let queue = DispatchQueue(label: "opget.log")
    // Sendable: the property is used only on `queue`.
    private nonisolated(unsafe) let log: RunLog?
    private let started: OperationInstant

    init(_ items: [DownloadItem], _ settings: Settings, log: RunLog?, display: TerminalDisplay) {
        self.display = display
        self.log = log
        isQuiet = settings.isQuiet
        started = SystemClock.system.now
        var state = State()
        state.results = Array(repeating: nil, count: items.count)
        if !isQuiet { state.rows = items.map { display.add(ProgressRow($0.shownName)) } }
        self.state = Mutex(state)
    }

    /// Whether the user or the log sees the progress of a download.
    var showsProgress: Bool { !isQuiet || log != nil }

    private func row(_ item: DownloadItem) -> Int? {
        state.withLock { $0.rows.indices.contains(item.index) ? $0.rows[item.index] : nil }
    }

    private func write(_ event: @autoclosure () -> RunEvent) {
        if log == nil { return }
        let event = event()
        queue.async { [self] in log?.write(event) }
    }

    // Events of a file.

    /// Reports that a download begins, or continues in another way.
    func began(_ item: DownloadItem) {
        guard state.withLock({ $0.begun.insert(item.index).inserted }) else { return }
        if let row = row(item) { display.pause(row, because: "connecting") }
        write(RunEvent("begin", item))
    }

    /// Reports the bytes of earlier runs or attempts that a download has found.
    ///
    /// Resumed bytes count only if they existed before the run. Discarded bytes always count.
    func found(_ item: DownloadItem, resumed: Int64, discarded: Int64) {
        let isNews = state.withLock { state in
            let old = state.starts[item.index]
            var start = old ?? Start(inherited: resumed)
            start.inherited = min(start.inherited, discarded > 0 ? resumed : start.inherited)
            // The numbers come from files on the disk and might be wrong, so the sum must not overflow.
            start.discarded = start.discarded > .max - discarded ? .max : start.discarded + discarded
            state.starts[item.index] = start
            if discarded > 0 { state.furthest[item.index] = nil }
            return discarded > 0 || (old == nil && resumed > 0)
        }
        guard isNews else { return }
        if discarded > 0, !isQuiet {
            display.say(
                "\(item.shownName): starting from the beginning, because the file on the server has changed or cannot "
                    + "be resumed (\(QuantityText.bytes(discarded)) discarded).")
        }
        var event = RunEvent(discarded > 0 ? "restart" : "resume", item)
        (event.resumed, event.discarded) = (resumed, discarded > 0 ? discarded : nil)
        write(event)
    }

    /// Reports a message for the user.
    func noted(_ item: DownloadItem, _ text: String) {
        if !isQuiet { display.say("\(item.shownName): \(text)") }
        var event = RunEvent("note", item)
        event.message = text
        write(event)
    }

    func advanced(_ item: DownloadItem, to bytes: Int64, of total: Int64?) {
        let known = state.withLock { state -> (Int64, Int64)? in
            // Events after the end of a file are ignored.
            guard state.results[item.index] == nil else { return nil }
            let furthest = max(state.furthest[item.index] ?? 0, bytes)
            state.furthest[item.index] = furthest
            return (state.starts[item.index]?.inherited ?? 0, furthest)
        }
        guard let (inherited, bytes) = known else { return }
        if log != nil { logProgress(item, bytes, total) }
        guard let row = row(item) else { return }
        display.set(
            row,
            to: ProgressRow(
                item.shownName, state: .running, completed: bytes, total: total, inherited: min(inherited, bytes)))
    }

    /// Logs the progress immediately, and then once per second.
    private func logProgress(_ item: DownloadItem, _ bytes: Int64, _ total: Int64?) {
        let now = SystemClock.system.now
        let isDue = state.withLock { state in
            if let last = state.lastProgress[item.index], last.duration(to: now) < .seconds(1) { return false }
            state.lastProgress[item.index] = now
            return true
        }
        guard isDue else { return }
        var event = RunEvent("progress", item)
        (event.bytes, event.total) = (bytes, total)
        write(event)
    }

    func retried(_ item: DownloadItem, _ event: RetryEvent) {
        guard let pause = event.pause else { return }
        let seconds = pause.inSeconds
        if let row = row(item) {
            display.pause(row, because: "next attempt in \(QuantityText.elapsed(pause)): \(event.error.message)")
        }
        var line = RunEvent("retry", item)
        (line.attempt, line.pause, line.code) = (event.attempt, seconds, "\(event.error.code)")
        (line.status, line.message) = (event.error.status, event.error.message)
        write(line)
    }

    func waitsForNetwork(_ item: DownloadItem) {
        if let row = row(item) { display.pause(row, because: "waiting for the network") }
        write(RunEvent("offline", item))
    }

    func ended(_ item: DownloadItem, _ result: FileResult) {
        let known = state.withLock { state -> FileResult? in
            guard state.results[item.index] == nil else { return nil }
            var result = result
            if case .done(var report) = result, let start = state.starts[item.index] {
                (report.resumedBytes, report.discardedBytes) = (min(start.inherited, report.bytes), start.discarded)
                result = .done(report)
            }
            state.results[item.index] = result
            state.lastProgress[item.index] = nil
            (state.starts[item.index], state.furthest[item.index]) = (nil, nil)
            return result
        }
        guard let result = known else { return }
        if isQuiet, case .failed(let failure) = result {
            display.say("opget: \(item.shownURL): \(failure.message)")
        }
        guard showsProgress else { return }
        var event = RunEvent("done", item)
        switch result {
        case .done(let report):
            endRow(
                item,
                ProgressRow(
                    Self.name(report.path), state: .done, completed: report.bytes, total: report.bytes,
                    inherited: report.resumedBytes))
            (event.file, event.bytes, event.resumed) = (report.path, report.bytes, report.resumedBytes)
            (event.discarded, event.segments) = (report.discardedBytes, report.segments)
        case .skipped(let path):
            endRow(item, ProgressRow(Self.name(path), state: .done, note: "already exists", unit: .items))
            event.event = "skip"
            event.file = path
        case .failed(let failure):
            endRow(item, ProgressRow(item.shownURL, state: .failed, note: failure.message))
            event.event = "fail"
            (event.code, event.status, event.exit) = (failure.code, failure.httpStatus, failure.status.rawValue)
            event.message = failure.message
        case .stopped: event.event = "stop"
        }
        write(event)
    }

    private func endRow(_ item: DownloadItem, _ row: @autoclosure () -> ProgressRow) {
        if let id = self.row(item) { display.set(id, to: row()) }
    }

    private static func name(_ path: String) -> String { (path as NSString).lastPathComponent }

    // End of the run.

    /// Prints the summary and returns the exit status of the program.
    func conclude(interruptedBy signal: Int32?) -> ExitStatus {
        let results = state.withLock { $0.results }
        var (done, skipped, failed, bytes) = (0, 0, 0, Int64(0))
        var status = ExitStatus.success
        for result in results {
            switch result {
            case .done(let report)?:
                done += 1
                bytes += report.bytes - report.resumedBytes
            case .skipped?: skipped += 1
            case .failed(let failure)?:
                failed += 1
                if status == .success { status = failure.status }
            case .stopped?, nil: if signal == nil, status == .success { status = .failure }
            }
        }
        // A signal after the end of all downloads has no effect.
        let isCut = results.contains { if case .stopped? = $0 { true } else { $0 == nil } }
        let signal = isCut ? signal : nil
        if let signal { status = ExitStatus(signal: signal) }
        if signal != nil {
            display.say("Interrupted. The received bytes are kept. To resume, run the same command with --continue.")
        } else if results.count > 1, !isQuiet {
            let seconds = started.duration(to: SystemClock.system.now)
            let kept = skipped > 0 ? ", \(skipped) skipped" : ""
            let bad = failed > 0 ? ", \(failed) failed" : ""
            let all = "\(QuantityText.bytes(bytes)) in \(QuantityText.elapsed(seconds))"
            display.say(
                skipped == results.count
                    ? "Nothing to do: \(skipped) skipped."
                    : "\(done) of \(results.count) downloaded\(kept)\(bad): \(all)")
        }
        var event = RunEvent("end")
        (event.done, event.skipped, event.failed, event.bytes) = (done, skipped, failed, bytes)
        event.exit = status.rawValue
        event.seconds = started.duration(to: SystemClock.system.now).inSeconds
        write(event)
        if let problem = queue.sync(execute: { log?.problem }) {
            display.say("opget: The log is incomplete: \(problem).")
            if status == .success { status = .disk }
        }
        display.finish()
        return status
    }
}

extension Duration {
    /// The duration as a number of seconds.
    var inSeconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}
