// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A synchronization object at which threads and Swift tasks wait until a test opens it.
///
/// Use a gate instead of a sleep in a test. After you open a gate, it stays open.
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
        /// The waiting threads and tasks, by their numbers.
        var waiting: [Int: @Sendable () -> Void] = [:]
        var lastNumber = 0
    }

    private let state = Locked(State())

    /// Creates a closed gate.
    public init() {}

    /// A Boolean value that indicates whether the gate is open.
    package var isOpen: Bool { state.withLock { $0.isOpen } }

    /// The number of threads and tasks that are waiting at the gate.
    package var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// Opens the gate permanently and resumes all waiting threads and tasks.
    public func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            return exchange(&state.waiting, with: [:]).sorted { $0.key < $1.key }.map(\.value)
        }
        for pass in waiting { pass() }
    }

    /// Blocks the current thread until the gate is open.
    @available(*, noasync, message: "This method blocks the thread. Await passage() instead.")
    public func wait() {
        let semaphore = DispatchSemaphore(value: 0)
        whenOpen { semaphore.signal() }
        semaphore.wait()
    }

    /// Waits until the gate is open, even if the current task is canceled.
    ///
    /// Use this method in code that must wait for the test. In the test itself, use ``passage(within:fileID:line:)``,
    /// because a test without a limit hangs if the gate stays closed.
    public func passage() async {
        await withCheckedContinuation { continuation in
            whenOpen { continuation.resume() }
        }
    }

    /// Waits until the gate is open, the limit is reached, or the current task is canceled.
    ///
    /// - Parameters:
    ///   - limit: The maximum time to wait.
    ///   - fileID: The source file that the error reports. The default is the caller's file.
    ///   - line: The source line that the error reports. The default is the caller's line.
    /// - Throws: An ``UnmetExpectation`` if the gate is still closed when the wait ends.
    public func passage(
        within limit: Duration, fileID: String = #fileID, line: Int = #line
    ) async throws(UnmetExpectation) {
        let answer = FirstAnswer<Wait>()
        let number = whenOpen { answer.give(.open) }
        let timer = SystemClock.shared.schedule(after: limit) { answer.give(.overdue) }
        let wait = await answer.valueUnlessCancelled(or: .cancelled)
        timer.cancel()
        if wait == .open { return }
        if let number { stopWaiting(number) }
        let found = wait == .cancelled ? "closed when the test's own task was canceled" : "closed"
        throw UnmetExpectation(
            "The gate was not opened", expected: "open, within \(Described.time(limit))", found: found, fileID: fileID,
            line: line)
    }

    /// The result of a wait.
    private enum Wait { case open, overdue, cancelled }

    /// Calls a closure when the gate is open, either immediately or on the thread that opens it.
    ///
    /// - Returns: A number for the waiting closure, or nil if the gate is already open.
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

    /// Releases a closure that waits for the gate, and does nothing if the gate has already called the closure.
    ///
    /// - Parameter number: The number that ``whenOpen(_:)`` returned.
    func stopWaiting(_ number: Int) {
        // The closure may hold other objects, so it is released after the lock.
        state.release { $0.waiting.removeValue(forKey: number) }
    }
}
