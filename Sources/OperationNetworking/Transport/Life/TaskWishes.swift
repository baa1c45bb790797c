// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What those who have a task want of it, gathered by any thread until the session's thread comes by.
///
/// Only the last word counts, so that a thousand calls are one visit.
package struct TaskWishes: Sendable {
    package private(set) var isStarted = false
    package private(set) var isSuspended = false
    package private(set) var isHeld = false
    package private(set) var isCancelled = false
    package private(set) var isBodyReady = false
    /// How long nothing was to be told.
    package private(set) var pauses = PauseClock()
    private var isPosted = false
    private var isEnded = false
    /// The number of the last order that was obeyed.
    private var obeyed = Int.min

    package init() {}

    /// Whether nothing is to be told at present.
    package var isBraked: Bool { isSuspended || isHeld }

    /// Each returns whether the session is to be told that there is something new.
    package mutating func resume(at now: Int64) -> Bool {
        brake(at: now) {
            $0.isStarted = true; $0.isSuspended = false
        }
    }
    package mutating func suspend(at now: Int64) -> Bool { brake(at: now) { $0.isSuspended = true } }
    package mutating func cancel() -> Bool { wish { $0.isCancelled = true } }
    package mutating func hold(at now: Int64) -> Bool { brake(at: now) { $0.isHeld = true } }
    package mutating func proceed(at now: Int64) -> Bool { brake(at: now) { $0.isHeld = false } }
    package mutating func bodyIsReady() -> Bool { wish { $0.isBodyReady = true } }
    package mutating func obey(_ order: BrakeOrder, at now: Int64) -> Bool {
        guard order.number > obeyed else { return false }
        obeyed = order.number
        return brake(at: now) {
            $0.isStarted = $0.isStarted || !order.isSuspended
            $0.isSuspended = order.isSuspended
            if let isHeld = order.isHeld { $0.isHeld = isHeld }
        }
    }

    private mutating func brake(at now: Int64, _ change: (inout TaskWishes) -> Void) -> Bool {
        wish {
            change(&$0)
            $0.pauses.set($0.isBraked, at: now)
        }
    }

    private mutating func wish(_ change: (inout TaskWishes) -> Void) -> Bool {
        guard !isEnded else { return false }
        let before = (isStarted, isSuspended, isHeld, isCancelled, isBodyReady)
        change(&self)
        guard before != (isStarted, isSuspended, isHeld, isCancelled, isBodyReady), !isPosted else { return false }
        // What only concerns a task that nobody started yet waits for the start.
        guard isStarted || isCancelled else { return false }
        isPosted = true
        return true
    }

    /// The session has come by: what is wanted now.
    package mutating func take() -> TaskWishes {
        isPosted = false
        defer { isBodyReady = false }
        return self
    }

    /// The end is decided: false if a cancel came first, or another end.
    package mutating func end(asCancelled: Bool) -> Bool {
        guard !isEnded, asCancelled || !isCancelled else { return false }
        isEnded = true
        return true
    }
}
