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
///     await hasBegun.passage()
///     operation.cancel()
///     try await operation.expectCancelled(.requested)
///     mayGoOn.open()
/// }
/// ```
public final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var waiting: [@Sendable () -> Void] = []
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
            defer { state.waiting = [] }
            return state.waiting
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
    public func passage() async {
        await withCheckedContinuation { continuation in
            whenOpen { continuation.resume() }
        }
    }

    /// Calls `pass` when the gate is open: at once, or on the thread that opens it.
    package func whenOpen(_ pass: @escaping @Sendable () -> Void) {
        let isOpen = state.withLock { state in
            if !state.isOpen { state.waiting.append(pass) }
            return state.isOpen
        }
        if isOpen { pass() }
    }
}
