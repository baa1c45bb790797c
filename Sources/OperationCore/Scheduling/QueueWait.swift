// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A wait for one event of a queue, or for the cancellation of the task that waits.
package final class QueueWait: Sendable {
    /// How many places it is for, if it is for room.
    let places: Int

    private enum State {
        case open
        case calling(@Sendable () -> Void)
        case waiting(CheckedContinuation<Bool, Never>)
        case ended(isByEvent: Bool)
    }

    private let state: Locked<State>

    private init(places: Int) {
        self.places = places
        state = Locked(.open)
    }

    /// Calls `tell` once when the event came.
    package init(_ tell: @escaping @Sendable () -> Void) {
        places = 1
        state = Locked(.calling(tell))
    }

    /// Waits; returns whether the event came, and not the cancellation.
    @discardableResult
    static func run(places: Int = 1, _ begin: (QueueWait) -> Void) async -> Bool {
        let wait = QueueWait(places: places)
        begin(wait)
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isByEvent = wait.state.withLock { state -> Bool? in
                    if case .ended(let isByEvent) = state { return isByEvent }
                    state = .waiting(continuation)
                    return nil
                }
                if let isByEvent { continuation.resume(returning: isByEvent) }
            }
        } onCancel: {
            wait.end(isByEvent: false)
        }
    }

    /// Waits for the event, whether or not the task is cancelled.
    static func runWhateverBecomesOfTheTask(_ begin: (QueueWait) -> Void) async {
        await withCheckedContinuation { continuation in
            begin(QueueWait { continuation.resume() })
        }
    }

    /// Whether the wait has ended.
    var isOver: Bool {
        state.withLock { if case .ended = $0 { true } else { false } }
    }

    /// Ends the wait; false if it had ended before.
    @discardableResult
    func end(isByEvent: Bool = true) -> Bool {
        let old = state.withLock { state in
            if case .ended = state { return state }
            return exchange(&state, with: .ended(isByEvent: isByEvent))
        }
        switch old {
        case .open: return true
        case .calling(let tell):
            tell()
            return true
        case .waiting(let continuation):
            continuation.resume(returning: isByEvent)
            return true
        case .ended: return false
        }
    }
}

/// Waits in the order in which they came.
///
/// Those that were given up are dropped once they are the most, so that waiting with a time limit for ever takes no memory.
struct WaitList {
    private var waits = Fifo<QueueWait>()
    private var limit = 64

    var isEmpty: Bool { waits.isEmpty }
    var count: Int { waits.count }

    mutating func append(_ wait: QueueWait) {
        if waits.count >= limit {
            var present = Fifo<QueueWait>()
            while let wait = popFirst() { present.append(wait) }
            waits = present
            limit = max(present.count * 2, 64)
        }
        waits.append(wait)
    }

    /// The first that was not given up, which stays.
    mutating func first() -> QueueWait? {
        while let wait = waits.first {
            if !wait.isOver { return wait }
            waits.removeFirst()
        }
        return nil
    }

    /// The first that was not given up.
    @discardableResult
    mutating func popFirst() -> QueueWait? {
        while let wait = waits.popFirst() {
            if !wait.isOver { return wait }
        }
        return nil
    }

    mutating func takeAll() -> [QueueWait] {
        var all: [QueueWait] = []
        while let wait = popFirst() { all.append(wait) }
        return all
    }
}
