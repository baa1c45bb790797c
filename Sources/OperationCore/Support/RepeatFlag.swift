// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// One thread notifies, then looks again. These are the two ways in which this package brings something into line with a
// state that several threads change; nothing else in it writes such a loop.
//
// | use | who does the work | when the caller returns |
// | --- | --- | --- |
// | `RepeatFlag` | one thread at a time, so the work may call observers | another thread may still be about to do it |
// | `applyLatest` | each thread, perhaps several at the same time | the caller itself has done it |

/// A flag that lets one thread at a time do work that several threads request.
///
/// Several threads change a state, and each change must be followed by work outside the lock: observers are notified, a task
/// is suspended. If each thread did the work itself, the thread with the older state could come last. If a thread skipped
/// the work because another thread is at it, the change could be lost: the other thread may have read the state before.
///
/// The flag lives under the lock of the state. A thread changes the state, then calls ``request()``. If this returns `true`,
/// the thread runs rounds: it reads the state, does the work without the lock, and calls ``finishRound()``, until that
/// returns `false`. So each request is followed by a round that begins after it, and no two rounds overlap. A request from
/// within the work leads to another round, not to a recursion. ``Locked/runRounds(of:_:)`` is this loop.
package struct RepeatFlag: Hashable, Sendable {
    private enum State { case idle, running, requested }

    private var state = State.idle

    package init() {}

    /// A Boolean value that indicates whether a thread runs rounds.
    package var isRunning: Bool { state != .idle }

    /// Requests a round, and returns whether the caller must run it.
    package mutating func request() -> Bool {
        defer { state = state == .idle ? .running : .requested }
        return state == .idle
    }

    /// Begins a round that covers every request made until now.
    ///
    /// It is for a thread that runs the first round some time after its request: without it, a request made in between would
    /// lead to another round, though this one sees the change. The caller reads the state afterwards.
    package mutating func startRound() { state = .running }

    /// Ends a round, and returns whether the caller must run another one, because it was requested during the last one.
    package mutating func finishRound() -> Bool {
        defer { state = state == .requested ? .running : .idle }
        return state == .requested
    }

    /// Ends the rounds of the caller, and returns whether another one was requested during the last one.
    ///
    /// It is for a thread that sees under the same lock that nothing is left to do.
    @discardableResult
    package mutating func stop() -> Bool {
        defer { state = .idle }
        return state == .requested
    }
}

extension Locked {
    /// Requests a round of the work that belongs to a flag in the value, and runs the rounds on this thread if no other thread
    /// does.
    ///
    /// Change the state before the call, and read it within the work. Where there is no other state, the value is the flag:
    /// `Locked(RepeatFlag())` and `\.self`.
    package borrowing func runRounds(of flag: WritableKeyPath<Value, RepeatFlag>, _ work: () -> Void) {
        guard withLock({ $0[keyPath: flag].request() }) else { return }
        repeat { work() } while withLock { $0[keyPath: flag].finishRound() }
    }
}

/// Applies a value that several threads may change, until the value that was applied last is the present one.
///
/// Each thread that changed the value calls it afterwards. When the call returns, this thread has applied the value that was
/// present at the call, or a newer one, and after the last of the calls the last value is in force: a thread that applied an
/// older value late finds the newer one when it reads the value again.
///
/// This is only true if `apply` depends on nothing but the value, and has the same effect whatever was applied before: it
/// sets, and does not toggle or count. Several threads may be in `apply` at the same time, so it calls no observers.
///
/// - Parameters:
///   - read: Returns the present value; returns `nil` if nothing is to be applied any more.
///   - apply: Applies the value, without a lock.
package func applyLatest<Value: Equatable>(_ read: () -> Value?, _ apply: (Value) -> Void) {
    var applied: Value?
    while let value = read(), value != applied {
        apply(value)
        applied = value
    }
}
