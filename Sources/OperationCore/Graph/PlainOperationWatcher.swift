// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// Calls a closure once when a Foundation operation has finished, through a dependency of Foundation.
///
/// The dependent is an operation in a private queue, whose body calls the closure. Foundation decides under its lock
/// whether the upstream operation still has to end, so no end is lost. A key-value observer can miss an end. The
/// observer is not notified of a change that was announced before it was registered and made after it looked.
///
/// Apple platforms use this watcher. Linux uses the one below, because a queue there may free the dependent while the
/// upstream operation still points to it.
package final class QueuedWatcher: Sendable {
    private static let queue: OperationQueue = {
        let queue = OperationQueue()
        queue.name = "OperationKit.Dependencies"
        return queue
    }()

    private let relay: Relay

    package init(_ upstream: Operation, onEnd: @escaping @Sendable (Operation) -> Void) {
        relay = Relay(upstream, onEnd: onEnd)
    }

    package func begin() { relay.begin(in: Self.queue) }

    // A canceled operation is ready, so the queue frees it although the upstream operation has not ended.
    deinit { relay.detach() }

    private final class Relay: Operation, @unchecked Sendable {
        // Sendable: the mutable state is protected by its lock.

        private let task: Locked<(upstream: Operation, onEnd: @Sendable (Operation) -> Void)?>

        init(_ upstream: Operation, onEnd: @escaping @Sendable (Operation) -> Void) {
            task = Locked((upstream, onEnd))
        }

        func begin(in queue: OperationQueue) {
            guard let upstream = task.withLock({ $0?.upstream }) else { return }
            addDependency(upstream)
            queue.addOperation(self)
        }

        func detach() {
            extendLifetime(task.withLock { exchange(&$0, with: nil) })
            cancel()
        }

        override func main() {
            guard let (upstream, onEnd) = task.withLock({ exchange(&$0, with: nil) }) else { return }
            onEnd(upstream)
        }
    }
}

#if canImport(ObjectiveC)
    typealias PlainOperationWatcher = QueuedWatcher
#else
    /// Calls a closure once when a Foundation operation has finished, and holds nothing that could outlive the watcher.
    ///
    /// Foundation on Linux keeps an unretained pointer to a dependent. So a dependent that is freed before its
    /// dependency must first remove the dependency, which is not possible while it is being freed. Therefore Foundation
    /// gets a separate dependent, which this watcher frees only after `detach`.
    final class PlainOperationWatcher: Sendable {
        private let probe: Probe

        init(_ upstream: Operation, onEnd: @escaping @Sendable (Operation) -> Void) {
            probe = Probe(upstream, onEnd: onEnd)
        }

        func begin() { probe.begin() }

        deinit { probe.detach() }

        /// An operation that never runs, and whose `isReady` Foundation reads when the dependency has finished.
        private final class Probe: Operation, @unchecked Sendable {
            // Sendable: the mutable state is protected by its lock.

            private struct State {
                var upstream: Operation?
                var onEnd: (@Sendable (Operation) -> Void)?
                var hasBegun = false
            }

            private let state: Locked<State>

            init(_ upstream: Operation, onEnd: @escaping @Sendable (Operation) -> Void) {
                state = Locked(State(upstream: upstream, onEnd: onEnd))
            }

            func begin() {
                guard let upstream = state.withLock({ $0.upstream }) else { return }
                addDependency(upstream)
                state.withLock { $0.hasBegun = true }
                callBackIfReady()
            }

            func detach() {
                let (upstream, onEnd) = state.withLock { state in
                    (exchange(&state.upstream, with: nil), exchange(&state.onEnd, with: nil))
                }
                extendLifetime(onEnd)
                // Removing the dependency takes the lock of the upstream operation, which then sees this dependent
                // either completely or not at all.
                if let upstream { removeDependency(upstream) }
            }

            override var isReady: Bool {
                let isReady = super.isReady
                if isReady { callBackIfReady() }
                return isReady
            }

            private func callBackIfReady() {
                guard let upstream = state.withLock({ $0.hasBegun ? $0.upstream : nil }), upstream.isFinished else {
                    return
                }
                state.withLock { exchange(&$0.onEnd, with: nil) }?(upstream)
            }
        }
    }
#endif
