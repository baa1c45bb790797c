// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import Synchronization

extension ManagedOperation {
    /// Adds an observer of the outcome, or notifies the observer immediately if handlers were already notified.
    ///
    /// A waiter is notified as soon as the outcome is decided.
    ///
    /// - Returns: A token that you use to remove the observer.
    @discardableResult
    package final func addObserver(
        isWaiter: Bool, _ notify: @escaping @Sendable (ManagedOperation) -> Void
    ) -> OutcomeObservation {
        OutcomeObservation(operation: self, id: keepObserver(isWaiter: isWaiter, notify))
    }

    /// Adds a waiter, which is never removed.
    ///
    /// Unlike ``addObserver(isWaiter:_:)``, this method creates no weak reference. After an object had one, each change
    /// of its reference count takes longer.
    package final func addWaiter(_ notify: @escaping @Sendable (ManagedOperation) -> Void) {
        _ = keepObserver(isWaiter: true, notify)
    }

    /// Keeps an observer and returns its number, or notifies the observer and returns `nil`.
    private func keepObserver(
        isWaiter: Bool, _ notify: @escaping @Sendable (ManagedOperation) -> Void
    ) -> UInt64? {
        let id = storage.withLock { core -> UInt64? in
            if isWaiter
                ? core.machine.ending != nil
                : core.machine.isOutcomeReported && core.extras?.notifying.isRunning != true
            {
                return nil
            }
            let extras = core.need()
            extras.lastObserverID += 1
            extras.observers.append(OutcomeObserver(isWaiter: isWaiter, notify: notify), id: extras.lastObserverID)
            return extras.lastObserverID
        }
        if id == nil { notify(self) }
        return id
    }
}

/// A token that you use to remove an observer of an outcome.
///
/// Releasing the token does not remove the observer.
public struct OutcomeObservation: Sendable {
    // Sendable: written once, in init; loading a weak reference is atomic.
    private nonisolated(unsafe) weak var operation: ManagedOperation?
    private let id: UInt64?

    init(operation: ManagedOperation, id: UInt64?) {
        self.operation = operation
        self.id = id
    }

    /// Removes the observer, unless OperationKit has already enqueued it.
    public func cancel() {
        if let id { operation?.storage.release { $0.extras?.observers.remove(id) } }
    }
}

extension TypedOperation {
    /// Adds a closure that is called once with the outcome, regardless of how the operation ends.
    ///
    /// The closure is an *observer*. OperationKit calls the observer in addition to the handlers and other observers.
    /// If several observers of one operation use the same serial queue, they are called in the order in which they were
    /// added. If the operation has ended, the observer is enqueued immediately. Unlike a handler, an observer is also
    /// called if the operation is canceled after its outcome was decided.
    ///
    /// - Parameters:
    ///   - queue: The queue on which the observer is called. The default is `nil`, which uses ``callbackQueue``.
    ///   - observer: The closure that is called with the outcome.
    /// - Returns: A token that you use to remove the observer.
    @discardableResult
    public final func observe(
        on queue: DispatchQueue? = nil,
        _ observer: @escaping @Sendable (OperationOutcome<ResultType, ErrorType>) -> Void
    ) -> OutcomeObservation {
        addObserver(isWaiter: false) { operation in
            guard let operation = operation as? TypedOperation, let outcome = operation.outcome else { return }
            // As for handlers, a cancellation may come from the operation's own `deinit`.
            let kept = outcome.cancellationCause == nil ? operation : nil
            (queue ?? operation.callbackQueue).async { withExtendedLifetime(kept) { observer(outcome) } }
        }
    }
}

// These methods are in the protocol and not in the class, so that each method returns the type of the subclass.
extension ResultOperation {
    /// Adds handlers that are called on the main actor, regardless of the `callbackQueue`.
    ///
    /// In a class that is isolated to the main actor, the handlers can use the properties of the class directly:
    ///
    /// ```swift
    /// @MainActor
    /// final class StatusLine {
    ///     private(set) var text = ""
    ///
    ///     func count(_ words: [String]) {
    ///         ClosureOperation { words.count }
    ///             .onMainActor(
    ///                 success: { [weak self] count in self?.text = "\(count) words" },
    ///                 cancellation: { [weak self] cause in
    ///                     self?.text = cause.message
    ///                 }
    ///             )
    ///             .startAndKeepAlive()
    ///     }
    /// }
    /// ```
    ///
    /// The handlers are called in addition to the other handlers of the operation, under the same rules:
    ///
    /// - At most one of the three handlers is called, and only once.
    /// - If the outcome is a cancellation, for example because of a timeout or a deadline, only `cancellation` is
    ///   called.
    /// - If you call `cancel()` on the main actor, neither `success` nor `failure` begins after `cancel()` has
    ///   returned.
    ///
    /// Each call to this method adds handlers without replacing earlier ones. If the operation has ended, the handler
    /// for its outcome is enqueued immediately.
    ///
    /// - Parameters:
    ///   - success: A closure that is called with the result. The default is `nil`.
    ///   - failure: A closure that is called with the error. The default is `nil`.
    ///   - cancellation: A closure that is called with the cause of a cancellation. The default is `nil`.
    /// - Returns: This operation.
    @discardableResult
    public func onMainActor(
        success: (@MainActor (ResultType) -> Void)? = nil,
        failure: (@MainActor (ErrorType) -> Void)? = nil,
        cancellation: (@MainActor (CancellationCause) -> Void)? = nil
    ) -> Self {
        addObserver(isWaiter: false) { operation in
            guard let outcome = (operation as? TypedOperation<ResultType, ErrorType>)?.outcome else { return }
            switch outcome {
            case .success(let result):
                guard let success else { return }
                operation.enqueueHandler(on: .main) { MainActor.assumeIsolated { success(result) } }
            case .failure(let error):
                guard let failure else { return }
                operation.enqueueHandler(on: .main) { MainActor.assumeIsolated { failure(error) } }
            case .cancelled(let cause):
                guard let cancellation else { return }
                // The operation is not kept, because the cancellation may come from its own `deinit`.
                DispatchQueue.main.async { MainActor.assumeIsolated { cancellation(cause) } }
            }
        }
        return self
    }

    /// Adds a handler that is called on the main actor with the outcome, regardless of how the operation ends.
    ///
    /// The handler is also called after a timeout, a deadline or a failed dependency. For example, use this handler to
    /// hide a progress indicator:
    ///
    /// ```swift
    /// @MainActor
    /// final class Counter {
    ///     private(set) var isLoading = false
    ///
    ///     func count(_ words: [String]) {
    ///         isLoading = true
    ///         ClosureOperation { words.count }
    ///             .onMainActor(outcome: { [weak self] _ in self?.isLoading = false })
    ///             .startAndKeepAlive()
    ///     }
    /// }
    /// ```
    ///
    /// The handler follows the same rules as the handlers of ``onMainActor(success:failure:cancellation:)``. If you
    /// call `cancel()` on the main actor after the operation has succeeded or failed, the handler is not called, unless
    /// it has already begun.
    ///
    /// - Parameter body: A closure that is called with the outcome.
    /// - Returns: This operation.
    @discardableResult
    public func onMainActor(
        outcome body: @escaping @MainActor (OperationOutcome<ResultType, ErrorType>) -> Void
    ) -> Self {
        onMainActor(
            success: { body(.success($0)) }, failure: { body(.failure($0)) }, cancellation: { body(.cancelled($0)) })
    }
}

/// A value that determines whether an enqueued handler may still begin.
///
/// A permit is created when the handler is enqueued, because an operation that has ended no longer knows its group and
/// its queue.
package struct HandlerPermit: Sendable {
    fileprivate let group: CancellationMark?
    /// The mark of the queue, and its count when the handler was enqueued.
    fileprivate let queue: (mark: CancellationMark, count: Int)?
    /// Keeps the operation registered with its owner although the operation has ended.
    fileprivate let membership: OwnerLink?
    /// A closure that records that the handler begins, if the queue is recorded.
    fileprivate let recordBeginning: (@Sendable () -> Void)?

    /// Returns whether the handler may begin.
    ///
    /// Call this method once, immediately before the handler would begin.
    ///
    /// The handler must not begin if the operation is canceled. The handler also must not begin if a call to `cancel`
    /// came after the outcome was decided. That call may be on the operation, on a group around it, on its queue or for
    /// its owner.
    package func allowsHandler(of operation: ManagedOperation?) -> Bool {
        membership?.withdraw()
        guard let operation else { return false }
        if let queue, queue.mark.count != queue.count { return false }
        if let group, group.isSet { return false }
        guard operation.mayCallHandlers else { return false }
        recordBeginning?()
        return true
    }

    /// Withdraws the permit of a handler that is not enqueued after all.
    fileprivate func withdraw() { membership?.withdraw() }
}

extension ManagedOperation {
    /// A Boolean value that indicates whether the operation itself lets its handlers begin.
    ///
    /// The value is `false` if the operation is canceled, or if `cancel` was called after its outcome was decided. An
    /// enqueued handler asks its ``HandlerPermit``, which also considers the group, the queue and the owner.
    package final var mayCallHandlers: Bool {
        let mayCall = storage.withLock { $0.isSilent ? false : !$0.machine.isCancelled }
        guard mayCall, let original else { return mayCall }
        return original.storage.withLock { !$0.isSilent }
    }

    /// Whether the handlers have been notified of the outcome.
    ///
    /// For an outcome that was set before the start, the value is `false` until the operation was started and its
    /// dependencies have ended.
    package final var isOutcomeReported: Bool { storage.withLock { $0.machine.isOutcomeReported } }

    /// Creates the permit for a handler that is about to be enqueued.
    ///
    /// - Parameter isOfOutcome: Whether a queue that is recorded records when the handler begins.
    package final func handlerPermit(isOfOutcome: Bool = false) -> HandlerPermit {
        let (host, slot, parent, parentSlot, membership) = core.withLock {
            ($0.host, $0.slot, $0.parent, $0.parentSlot, $0.membership)
        }
        // A child that runs on the thread of its group's body is in no queue itself, but its group may be.
        let mark = if let host { host.cancellations } else { parent?.acceptedBy?.cancellations }
        let queue: (CancellationMark, Int)? = if let mark { (mark, mark.count) } else { nil }
        return HandlerPermit(
            group: parent?.cancellationMark(forChildAt: parentSlot), queue: queue,
            membership: membership?.entered(again: life),
            recordBeginning: isOfOutcome ? host?.recordHandler(at: slot) : nil)
    }

    /// Enqueues a handler, which begins only if the operation has not been canceled by then.
    ///
    /// The operation stays alive until then.
    package final func enqueueHandler(on queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void) {
        let permit = handlerPermit()
        queue.async { [self] in
            if permit.allowsHandler(of: self) { handler() }
            extendLifetime(self)
        }
    }

    /// Enqueues a handler as ``enqueueHandler(on:_:)`` does, unless the outcome is decided.
    ///
    /// The handler of the outcome comes later, because this method enqueues its handler under the lock under which the
    /// outcome is decided. Putting a block on a queue calls no code of the user. Until the handler begins, only the
    /// handler can keep the operation alive.
    package final func enqueueBeforeOutcome(on queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void) {
        let permit = handlerPermit()
        let isEnqueued = core.withLock { core in
            guard core.machine.ending == nil else { return false }
            queue.async { [weak self] in
                if permit.allowsHandler(of: self) { handler() }
            }
            return true
        }
        if !isEnqueued { permit.withdraw() }
    }
}

/// A counter of the cancellations of a group or a queue as a whole, for handlers of operations that have left it.
final class CancellationMark: Sendable {
    private let value: Atomic<Int>
    // Sendable: written in `init` and `deinit` only.
    private nonisolated(unsafe) var outer: CancellationMark?

    /// Creates a mark.
    ///
    /// - Parameters:
    ///   - isSet: Whether the group was canceled before.
    ///   - outer: The mark of the group around the group.
    init(isSet: Bool = false, in outer: CancellationMark? = nil) {
        value = Atomic(isSet ? 1 : 0)
        self.outer = outer
    }

    deinit {
        // Groups can be nested deeply. The loop frees the marks without recursion.
        if outer != nil { ThreadWorklist.release(exchange(&outer, with: nil)) }
    }

    var count: Int { value.load(ordering: .acquiring) }

    func set() { value.add(1, ordering: .acquiringAndReleasing) }

    /// Whether the group or a group around it was canceled.
    var isSet: Bool {
        var next: CancellationMark? = self
        while let mark = next {
            if mark.count > 0 { return true }
            next = mark.outer
        }
        return false
    }
}
