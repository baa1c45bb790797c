// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How the wait of a body for a child came out.
enum GroupWaitEnd: Sendable {
    case ended
    case refused(CancellationCause)
    /// The operation is somebody else's.
    ///
    /// At the end of a wait: and it has ended.
    case elsewhere
}

/// Who goes on when a child has ended.
enum GroupWaiter: Sendable {
    case none
    case task(UnsafeContinuation<GroupWaitEnd, Never>)
    case thread(BlockingWaiter)

    var isNone: Bool { if case .none = self { true } else { false } }
    var isTask: Bool { if case .task = self { true } else { false } }

    func goOn(_ end: GroupWaitEnd) {
        switch self {
        case .none: break
        case .task(let continuation): continuation.resume(returning: end)
        case .thread(let waiter): waiter.wake()
        }
    }
}

/// The waits of a body: while there is one, the group needs no place in its queue.
struct GroupWaits {
    /// How many tasks wait.
    private(set) var count = 0
    /// Which of its rests the group is in, or was in last; the first is that of a group without a body.
    private(set) var rest: UInt32 = 1
    /// The last rest that was taken; several tasks may begin to wait at once.
    private var taken: UInt32 = 1
    /// Waits that are over, and go on when the group is resumed.
    private var held: [GroupWaiter] = []
    /// Waits for operations that are no children.
    private var strangers: [UInt64: (waiter: GroupWaiter, isShielded: Bool)] = [:]
    /// Waits whose task was cancelled before they began.
    private var cancelledStrangers: Set<UInt64> = []
    private var lastStranger: UInt64 = 0

    /// A task waits.
    mutating func begin() {
        count += 1
        if count == 1 { rest += 1 }
    }

    /// The rest that is to begin now, by whoever asks first.
    mutating func takeNewRest() -> UInt32? {
        guard count > 0, taken != rest else { return nil }
        taken = rest
        return rest
    }

    /// A task waits no more; true if it was the last.
    mutating func end() -> Bool {
        count -= 1
        return count == 0
    }

    /// The next rest, where others wait though the group has just got a place.
    mutating func restAgain() -> UInt32? {
        guard count > 0 else { return nil }
        rest += 1
        taken = rest
        return rest
    }

    mutating func hold(_ waiter: GroupWaiter) { held.append(waiter) }

    mutating func takeHeld() -> [GroupWaiter] { exchange(&held, with: []) }

    var strangerCount: Int { strangers.count }

    /// The number of a wait that is about to begin.
    mutating func nextStranger() -> UInt64 {
        lastStranger += 1
        return lastStranger
    }

    /// False if the task that waits was cancelled before.
    mutating func beginStranger(_ id: UInt64, _ waiter: GroupWaiter, isShielded: Bool) -> Bool {
        if cancelledStrangers.remove(id) != nil { return false }
        strangers[id] = (waiter, isShielded)
        if waiter.isTask { begin() }
        return true
    }

    /// The task that waits, or is about to, was cancelled.
    mutating func cancelStranger(_ id: UInt64) -> GroupWaiter {
        let waiter = endStranger(id)
        if waiter.isNone { cancelledStrangers.insert(id) }
        return waiter
    }

    /// The wait is over, whoever ended it.
    mutating func forgetStranger(_ id: UInt64) { cancelledStrangers.remove(id) }

    mutating func endStranger(_ id: UInt64) -> GroupWaiter { strangers.removeValue(forKey: id)?.waiter ?? .none }

    /// All that can end without a child, and are not shielded: the group was cancelled.
    mutating func takeAll() -> [GroupWaiter] {
        if strangers.isEmpty { return [] }
        let over = strangers.filter { !$0.value.isShielded }
        for id in over.keys { strangers[id] = nil }
        return over.values.map(\.waiter)
    }
}
