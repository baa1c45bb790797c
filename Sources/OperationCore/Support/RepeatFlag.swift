// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

// This package applies a state that several threads change in one of these two ways. No other code in it contains such
// a loop.
//
// | use | which thread does the work | when the call returns |
// | --- | --- | --- |
// | `RepeatFlag` | one thread at a time, so the work may call observers | another thread may have to do the work |
// | `applyLatest` | each thread, perhaps several at the same time | the caller itself has done the work |

/// A flag that lets one thread at a time do work that several threads request.
///
/// Several threads change a state, and each change must be followed by work without holding the lock, such as notifying
/// observers or suspending a task. If each thread did the work itself, the thread with the older state could come last.
/// If a thread skipped the work because another thread is doing it, the change could be lost, because the other thread
/// may have read the state before.
///
/// The flag is protected by the lock of the state. A thread changes the state and then calls ``request()``. If this
/// call returns `true`, the thread runs rounds. In each round, it reads the state, does the work without the lock, and
/// calls ``finishRound()``, until that call returns `false`. So each request is followed by a round that begins after
/// the request, and no two rounds overlap. A request from within the work leads to another round and not to a
/// recursion. ``Locked/runRounds(of:_:)`` is this loop.
package struct RepeatFlag: Hashable, Sendable {
    private enum State { case idle, running, requested }

    private var state = State.idle

    package init() {}

    /// A Boolean value that indicates whether a thread is running rounds.
    package var isRunning: Bool { state != .idle }

    /// Requests a round, and returns whether the caller must run it.
    package mutating func request() -> Bool {
        defer { state = state == .idle ? .running : .requested }
        return state == .idle
    }

    /// Begins a round that covers every request made until now.
    ///
    /// Use this method if a thread runs its first round some time after its request. Otherwise, a request made in
    /// between would lead to another round, although this round sees the change. The caller reads the state after this
    /// call.
    package mutating func startRound() { state = .running }

    /// Ends a round, and returns whether the caller must run another one because it was requested during this round.
    package mutating func finishRound() -> Bool {
        defer { state = state == .requested ? .running : .idle }
        return state == .requested
    }

    /// Ends the rounds of the caller, and returns whether another round was requested during the last one.
    ///
    /// Use this method if the thread sees under the same lock that no work is left.
    @discardableResult
    package mutating func stop() -> Bool {
        defer { state = .idle }
        return state == .requested
    }
}

extension Locked {
    /// Requests a round of the work, and runs the rounds on this thread if no other thread does.
    ///
    /// Change the state before the call, and read it within the work. If there is no other state, the value itself is
    /// the flag. In that case, use `Locked(RepeatFlag())` and `\.self`.
    ///
    /// - Parameters:
    ///   - flag: The key path of the flag in the value.
    ///   - work: A closure that is called once for each round, without the lock.
    package borrowing func runRounds(of flag: WritableKeyPath<Value, RepeatFlag>, _ work: () -> Void) {
        guard withLock({ $0[keyPath: flag].request() }) else { return }
        repeat { work() } while withLock { $0[keyPath: flag].finishRound() }
    }
}

/// Applies a value that several threads may change, until the value that was applied last is the current one.
///
/// Each thread that changed the value calls this function afterward. When the call returns, this thread has applied the
/// value that was current at the call, or a newer one. A thread that applied an older value late finds the newer value
/// when it reads again. So after the last call, the last value is in effect.
///
/// This is only true if `apply` depends on nothing but the value and has the same effect regardless of the previous
/// values. The closure must set something, and not toggle or count. Several threads may be in `apply` at the same time,
/// so it must not call observers.
///
/// - Parameters:
///   - read: A closure that returns the current value, or `nil` if no value must be applied anymore.
///   - apply: A closure that applies the value, without a lock.
package func applyLatest<Value: Equatable>(_ read: () -> Value?, _ apply: (Value) -> Void) {
    var applied: Value?
    while let value = read(), value != applied {
        apply(value)
        applied = value
    }
}
