// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

// Single ones of those that wait.
extension AuthenticationRealm {
    func run(
        _ operation: any AnyNetworkOperation, on queue: QueueManager?,
        changing change: @escaping PostponedOperations.Change
    ) throws(QueueError) -> Bool {
        guard let waiter = takeOut(operation), let host = waiter.operation else { return false }
        let goOn = { @Sendable [self, weak host] in
            host?.networkAttempts.policy(of: CredentialAgent.self)?.goWithout(self)
            host?.networkAttempts.change(with: change)
            waiter.goOn()
        }
        // Its own place is the one for which it would wait there, behind whoever stands for it.
        guard let queue, !host.isHosted(by: queue) else {
            goOn()
            return true
        }
        do throws(QueueError) {
            try queue.add(PostponedRun(of: host, goOn))
        } catch {
            // Its place in the line is gone, and what it waits for may have come meanwhile: it asks anew.
            waiter.goOn()
            throw error
        }
        return true
    }

    func fail(_ operation: any AnyNetworkOperation, because error: (any Error)?) -> Bool {
        guard let waiter = takeOut(operation) else { return false }
        waiter.fail(self.error(Machine.Failure(.failed, error: error)))
        return true
    }

    /// Takes it out of the line; nil if it is not in it.
    private func takeOut(_ operation: any AnyNetworkOperation) -> Waiter? {
        // Looked for outside of the lock, where an operation may go that has just ended.
        let waiters = state.withLock { $0.waiters }
        guard let ticket = waiters.first(where: { $0.value.operation === operation })?.key else { return nil }
        return state.withLock { state in
            state.machine.leave(ticket)
            return state.waiters.removeValue(forKey: ticket)
        }
    }
}

extension Authenticator {
    /// Sends one of the ``postponed`` operations again, changed, without this realm's credential; false if it is not one of
    /// them.
    ///
    /// From now on it is yours: the realm puts no credential into its requests any more, `change` does, and one that is
    /// rejected fails with that.
    ///
    /// - Parameters:
    ///   - operation: One of those that wait.
    ///   - queue: Lets it go on when it would begin in that queue, as ``PostponedOperations/runAll(on:changing:)`` does.
    ///   - change: Changes its request: of this attempt, and of those that follow.
    /// - Throws: If the queue takes no more. Then it waits for a credential as before, at the end of the line.
    @discardableResult
    public func run(
        _ operation: any AnyNetworkOperation, on queue: QueueManager? = nil,
        changing change: @escaping PostponedOperations.Change
    ) throws(QueueError) -> Bool {
        try realm.run(operation, on: queue, changing: change)
    }

    /// Lets one of the ``postponed`` operations fail; false if it is not one of them.
    @discardableResult
    public func fail(_ operation: any AnyNetworkOperation, because error: (any Error)? = nil) -> Bool {
        realm.fail(operation, because: error)
    }
}
