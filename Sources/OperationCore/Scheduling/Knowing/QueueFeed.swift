// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The events of a queue that one reader has not read yet, up to a number.
///
/// The queue adds to it under its lock, so that the order is that of the changes. Where there is no room, all of them are
/// dropped and none is added until the reader comes and takes the state of that moment: so the reader has either each
/// event since a snapshot, or is told how many it missed.
final class QueueFeed: Sendable {
    private enum Phase {
        case following
        /// Events were dropped.
        case overflowed
        case ended
    }

    private enum Step: Sendable {
        case update(QueueUpdate?)
        case again
    }

    private struct State {
        var phase = Phase.following
        var snapshot: QueueUpdate?
        var unread = Fifo<QueueEvent>()
        /// The number up to which the reader knows everything.
        var lastRead: UInt64?
        var reader: CheckedContinuation<Step, Never>?

        var mustBeginAnew: Bool { phase == .overflowed && snapshot == nil }

        mutating func show(_ new: QueueSnapshot) {
            snapshot = lastRead.map { .missed(new.number - $0, new) } ?? .snapshot(new)
            lastRead = new.number
        }

        mutating func takeNext() -> QueueUpdate? {
            if let update = exchange(&snapshot, with: nil) { return update }
            guard let event = unread.popFirst() else { return nil }
            lastRead = event.number
            return .event(event)
        }
    }

    private let state = Locked(State())
    private let capacity: Int

    init(capacity: Int) { self.capacity = max(capacity, 1) }

    /// Under the queue's lock: the reader begins, or begins anew, with a state.
    func begin(with snapshot: QueueSnapshot) {
        state.withLock { state in
            guard state.phase != .ended else { return }
            state.phase = .following
            state.show(snapshot)
        }
    }

    /// Under the queue's lock: returns what is to be done after it.
    func add(_ event: QueueEvent) -> (@Sendable () -> Void)? {
        state.withLock { state in
            guard state.phase == .following else { return nil }
            if let reader = exchange(&state.reader, with: nil) {
                state.lastRead = event.number
                return { reader.resume(returning: .update(.event(event))) }
            }
            if state.unread.count < capacity {
                state.unread.append(event)
                return nil
            }
            state.phase = .overflowed
            // Their operations may go with them, which must not happen here.
            let dropped = exchange(&state.unread, with: Fifo())
            return { withExtendedLifetime(dropped) {} }
        }
    }

    /// No event follows; a reader that missed some is given the last state.
    func end(with last: QueueSnapshot?) {
        let (reader, update) = state.withLock { state in
            if state.mustBeginAnew, let last { state.show(last) }
            state.phase = .ended
            let reader = exchange(&state.reader, with: nil)
            return (reader, reader == nil ? nil : state.takeNext())
        }
        reader?.resume(returning: .update(update))
    }

    /// The next update; nil after the last, and when the task is cancelled.
    ///
    /// - Parameter refresh: Has the queue call `begin`; false if the queue is being freed.
    func next(refresh: () -> Bool) async -> QueueUpdate? {
        while true {
            let isStuck = state.withLock { $0.mustBeginAnew } && !refresh()
            switch await wait(isStuck: isStuck) {
            case .update(let update): return update
            case .again: continue
            }
        }
    }

    private func wait(isStuck: Bool) async -> Step {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let step: Step? = state.withLock { state in
                    if Task.isCancelled || state.reader != nil { return .update(nil) }
                    if let update = state.takeNext() { return .update(update) }
                    if state.phase == .ended { return .update(nil) }
                    // It overflowed since the look at it; a queue that is being freed will end it.
                    if state.mustBeginAnew, !isStuck { return .again }
                    state.reader = continuation
                    return nil
                }
                if let step { continuation.resume(returning: step) }
            }
        } onCancel: {
            end(with: nil)
        }
    }
}
