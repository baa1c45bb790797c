// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import OperationCore

/// The closures and the delegate of an operation that are called on the main actor.
///
/// The operation treats this object as one more delegate, and calls it on the main queue.
final class MainActorCallbacks: NetworkOperationDelegate {
    enum Event: Sendable {
        case sent(TransferProgress)
        case received(TransferProgress)
        case decided(RetryEvent)
        case waitsForNetwork
    }

    typealias Callback = @MainActor (any AnyNetworkOperation, Event) -> Void

    private struct State {
        var callbacks: [Callback] = []
        /// The closures of the operation's ``NetworkBase``, which are called first.
        var callbacksOfBase: [Callback] = []
        weak var delegate: (any MainActorNetworkOperationDelegate)?
        var isDelegateNotifiedOfEnd = false
    }

    private let state = Locked(State())

    func add(_ callback: @escaping Callback) { state.withLock { $0.callbacks.append(callback) } }

    /// Replaces the closures of a ``NetworkBase``.
    func set(ofBase callbacks: [Callback]) {
        state.release { exchange(&$0.callbacksOfBase, with: callbacks) }
    }

    @MainActor var delegate: (any MainActorNetworkOperationDelegate)? {
        get { state.withLock { $0.delegate } }
        set {
            // If nothing else keeps the old delegate, it is freed here, without holding the lock.
            state.release { state in
                let old = state.delegate
                if old !== newValue { state.isDelegateNotifiedOfEnd = false }
                state.delegate = newValue
                return old
            }
        }
    }

    /// Calls the closures and then the delegate, until one of them cancels the operation.
    private func call(
        _ event: Event, of operation: any AnyNetworkOperation,
        _ body: @MainActor (any MainActorNetworkOperationDelegate) -> Void
    ) {
        MainActor.assumeIsolated {
            let callbacks = state.withLock { $0.callbacksOfBase + $0.callbacks }
            for callback in callbacks where operation.mayCallHandlers { callback(operation, event) }
            if let delegate, operation.mayCallHandlers { body(delegate) }
        }
    }

    func networkOperation(_ operation: any AnyNetworkOperation, didSend progress: TransferProgress) {
        call(.sent(progress), of: operation) { $0.networkOperation(operation, didSend: progress) }
    }

    func networkOperation(_ operation: any AnyNetworkOperation, didReceive progress: TransferProgress) {
        call(.received(progress), of: operation) { $0.networkOperation(operation, didReceive: progress) }
    }

    func networkOperation(_ operation: any AnyNetworkOperation, didDecide event: RetryEvent) {
        call(.decided(event), of: operation) { $0.networkOperation(operation, didDecide: event) }
    }

    func networkOperationWaitsForNetwork(_ operation: any AnyNetworkOperation) {
        call(.waitsForNetwork, of: operation) { $0.networkOperationWaitsForNetwork(operation) }
    }

    func networkOperation(_ operation: any AnyNetworkOperation, didFinishWith error: NetworkError?) {
        end { $0.networkOperation(operation, didFinishWith: error) }
    }

    func networkOperation(_ operation: any AnyNetworkOperation, wasCancelledBecause cause: CancellationCause) {
        end { $0.networkOperation(operation, wasCancelledBecause: cause) }
    }

    /// Notifies the delegate of the end, unless it was notified before.
    private func end(_ body: @MainActor (any MainActorNetworkOperationDelegate) -> Void) {
        MainActor.assumeIsolated {
            let delegate = state.withLock { state in
                let delegate = state.isDelegateNotifiedOfEnd ? nil : state.delegate
                if delegate != nil { state.isDelegateNotifiedOfEnd = true }
                return delegate
            }
            if let delegate { body(delegate) }
        }
    }

    /// Releases the closures, because none of them is called after the end.
    func release() {
        state.release { state in
            (exchange(&state.callbacks, with: []), exchange(&state.callbacksOfBase, with: []))
        }
    }
}

extension AttemptOwner {
    /// Notifies the handler and the delegate on the callback queue, and the main actor callbacks on the main queue.
    ///
    /// - Parameter isTooLate: A closure that is called on each queue. If it returns `true`, the notification is
    ///   dropped.
    func notify(
        _ handler: (@Sendable () -> Void)?, unless isTooLate: @escaping @Sendable () -> Bool,
        _ body: @escaping @Sendable (any NetworkOperationDelegate) -> Void
    ) {
        let delegate = delegate
        if handler != nil || delegate != nil {
            enqueueHandler(on: nearestCallbackQueue) {
                guard !isTooLate() else { return }
                handler?()
                // The handler may have canceled the operation.
                if let delegate, self.mayCallHandlers { body(delegate) }
            }
        }
        guard let callbacks = networkAttempts.reporter.mainActorCallbacks else { return }
        enqueueHandler(on: .main) {
            if !isTooLate() { body(callbacks) }
        }
    }
}
