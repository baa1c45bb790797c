// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A gate that is shut until somebody opens it: what tests use in the place of sleeping.
///
/// Threads and tasks wait at it; once opened it stays open.
///
/// ```swift
/// import OperationCore
/// import OperationTestKit
///
/// func cancelledInTheMiddle() async throws {
///     let hasBegun = Gate(), mayGoOn = Gate()
///     let operation = TaskOperation {
///         hasBegun.open()
///         await mayGoOn.passage()
///     }
///     operation.start()
///     try await hasBegun.passage(within: .seconds(60))
///     operation.cancel()
///     try await operation.expectCancelled(.requested)
///     mayGoOn.open()
/// }
/// ```
public final class Gate: Sendable {
    private struct State {
        var isOpen = false
        /// Those who wait, by their numbers.
        var waiting: [Int: @Sendable () -> Void] = [:]
        var lastNumber = 0
    }

    private let state = Locked(State())

    /// Makes a gate that is shut.
    public init() {}

    /// Whether the gate was opened.
    public var isOpen: Bool { state.withLock { $0.isOpen } }

    /// How many threads and tasks stand before the gate.
    public var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// Lets everybody through, now and later.
    public func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            return exchange(&state.waiting, with: [:]).sorted { $0.key < $1.key }.map(\.value)
        }
        for pass in waiting { pass() }
    }

    /// Blocks the calling thread until the gate is open.
    @available(*, noasync, message: "Await passage() instead: this blocks the thread.")
    public func wait() {
        let semaphore = DispatchSemaphore(value: 0)
        whenOpen { semaphore.signal() }
        semaphore.wait()
    }

    /// Waits until the gate is open, also where the task that waits is cancelled.
    ///
    /// It is for the code that is held up. A test that waits for something should say for how long, with
    /// ``passage(within:fileID:line:)``: at a gate that nobody opens it would stand for ever.
    public func passage() async {
        await withCheckedContinuation { continuation in
            whenOpen { continuation.resume() }
        }
    }

    /// Waits until the gate is open, but no longer than that, and not when the test's own task is cancelled.
    ///
    /// - Throws: If the gate is still shut by then.
    public func passage(
        within limit: Duration, fileID: String = #fileID, line: Int = #line
    ) async throws(UnmetExpectation) {
        let answer = FirstAnswer<Wait>()
        let number = whenOpen { answer.give(.open) }
        let timer = SystemClock.shared.schedule(after: limit) { answer.give(.overdue) }
        let wait = await answer.valueUnlessCancelled(or: .cancelled)
        timer.cancel()
        if wait == .open { return }
        if let number { forget(number) }
        let found = wait == .cancelled ? "shut when the test's own task was cancelled" : "shut"
        throw UnmetExpectation(
            "Nobody opened the gate", expected: "open, within \(Told.time(limit))", found: found, fileID: fileID,
            line: line)
    }

    /// How a wait came to its end.
    private enum Wait { case open, overdue, cancelled }

    /// One who waited has gone.
    private func forget(_ number: Int) {
        // What it holds goes after the lock.
        let left = state.withLock { $0.waiting.removeValue(forKey: number) }
        withExtendedLifetime(left) {}
    }

    /// Calls `pass` when the gate is open: at once, or on the thread that opens it.
    ///
    /// - Returns: The number of the one who waits; nil if nobody does.
    @discardableResult
    package func whenOpen(_ pass: @escaping @Sendable () -> Void) -> Int? {
        let number: Int? = state.withLock { state in
            if state.isOpen { return nil }
            state.lastNumber += 1
            state.waiting[state.lastNumber] = pass
            return state.lastNumber
        }
        if number == nil { pass() }
        return number
    }
}
