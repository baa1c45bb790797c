// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

/// Tells an operation's listeners of its progress, on its callback queue, one report at a time.
///
/// A queue that is slow gets fewer reports, not a pile of them: at most one waits there, and it tells what is true when
/// its turn comes.
final class ProgressTeller: Sendable {
    enum Direction: Sendable { case upload, download }

    struct Listeners: Sendable {
        var upload: (@Sendable (TransferProgress) -> Void)?
        var download: (@Sendable (TransferProgress) -> Void)?
        var foundation: FoundationProgress?
        // Sendable: loading a weak reference is atomic, and it is only written under the lock.
        nonisolated(unsafe) weak var delegate: (any NetworkOperationDelegate)?
        // Sendable: as the delegate. Formed long before the operation may be freed, it is nil once that begins.
        nonisolated(unsafe) weak var operation: (any AttemptHost)?
        var isDelegateToldOfEnd = false
        var pacing = ProgressPacing()

        var isAny: Bool { upload != nil || download != nil || foundation != nil || delegate != nil }
    }

    fileprivate struct State {
        var listeners = Listeners()
        var upload = ProgressTrack()
        var download = ProgressTrack()
        var isScheduled = false
        var isLast = false
        /// Whether Foundation's progress is to be finished.
        var owesFinish = false
    }

    private let state = Locked(State())

    func listeners<Result>(_ body: (inout Listeners) -> Result) -> Result { state.withLock { body(&$0.listeners) } }

    /// Replaces a listener; the one that was there goes outside of the lock.
    func set<Value>(_ path: WritableKeyPath<Listeners, Value>, _ value: Value) {
        var value = value
        state.withLock { swap(&$0.listeners[keyPath: path], &value) }
    }

    var upload: TransferProgress { state.withLock { $0.upload.progress } }
    var download: TransferProgress { state.withLock { $0.download.progress } }

    /// Notes how far a direction has come, and sees to it that it is told.
    func note(
        _ direction: Direction, _ count: Int64?, of total: Int64?, for operation: any AnyNetworkOperation
    ) {
        schedule(for: operation) { state in
            switch direction {
            case .upload: Self.advance(&state.upload, count, total)
            case .download: Self.advance(&state.download, count, total)
            }
        }
        operation.fractionDidChange { operation.completedFraction }
    }

    private static func advance(_ track: inout ProgressTrack, _ count: Int64?, _ total: Int64?) {
        if track.total == nil || count == nil { track.expect(total) }
        if let count { track.reach(count) }
    }

    var hasDelegate: Bool { state.withLock { $0.listeners.delegate != nil } }

    /// The delegate of an operation that has its outcome, with the operation; once.
    func takeDelegateForEnd() -> (any NetworkOperationDelegate, any AttemptHost)? {
        state.withLock { state in
            guard !state.listeners.isDelegateToldOfEnd, let delegate = state.listeners.delegate,
                let operation = state.listeners.operation
            else { return nil }
            state.listeners.isDelegateToldOfEnd = true
            return (delegate, operation)
        }
    }

    /// The transfer is complete.
    func complete(for operation: any AnyNetworkOperation) {
        schedule(for: operation) { state in
            state.download.complete()
            state.isLast = true
            state.owesFinish = state.listeners.foundation != nil
        }
    }

    private func schedule(for operation: any AnyNetworkOperation, _ change: (inout State) -> Void) {
        let mayTell = state.withLock { state in
            change(&state)
            return !state.isScheduled && state.listeners.isAny
        }
        guard mayTell else { return }
        let now = operation.clock.now
        let isNeeded = state.withLock { state in
            guard !state.isScheduled, state.hasReport(at: now) else { return false }
            state.isScheduled = true
            return true
        }
        guard isNeeded else { return }
        operation.callbackQueueOfAttempts.async { [weak operation] in
            if let operation { self.tell(operation) }
        }
    }

    private func tell(_ operation: any AnyNetworkOperation) {
        while true {
            let now = operation.clock.now
            let (listeners, upload, download, isComplete) = state.withLock { state in
                let reports = state.takeReports(at: now)
                let isOver = reports.upload == nil && reports.download == nil && !state.owesFinish
                if isOver { state.isScheduled = false }
                state.owesFinish = false
                return (isOver ? nil : state.listeners, reports.upload, reports.download, state.isLast)
            }
            guard let listeners else { return }
            if let upload, !operation.isCancelled {
                listeners.upload?(upload)
                listeners.delegate?.networkOperation(operation, didSend: upload)
            }
            if let download, !operation.isCancelled {
                listeners.download?(download)
                listeners.delegate?.networkOperation(operation, didReceive: download)
            }
            if !operation.isCancelled {
                listeners.foundation?.update(
                    upload: self.upload, download: self.download, isComplete: isComplete)
            }
        }
    }
}

extension ProgressTeller.State {
    fileprivate func hasReport(at now: OperationInstant) -> Bool {
        var copy = self
        let reports = copy.takeReports(at: now)
        return reports.upload != nil || reports.download != nil || owesFinish
    }

    fileprivate mutating func takeReports(
        at now: OperationInstant
    ) -> (upload: TransferProgress?, download: TransferProgress?) {
        let isLast = isLast
        let pacing = listeners.pacing
        return (
            upload.report(pacing, isLast: isLast, now: now), download.report(pacing, isLast: isLast, now: now)
        )
    }
}
