// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// What a loopback server saw: written by its thread, read and waited for by tests.
final class LoopbackJournal: Sendable {
    private struct Waiter: Sendable {
        let id: Int
        let isReached: @Sendable (LoopbackCounts) -> Bool
        let pass: @Sendable () -> Void
    }

    private struct State {
        var counts = LoopbackCounts()
        var requests: [LoopbackRequest] = []
        var violations: [LoopbackViolation] = []
        var waiters: [Waiter] = []
        var lastWaiter = 0
    }

    private let state = Locked(State())
    private let keptRequests: Int
    private let keptViolations = 1_000

    init(keptRequests: Int) {
        self.keptRequests = max(keptRequests, 1)
    }

    var counts: LoopbackCounts { state.withLock { $0.counts } }
    var violations: [LoopbackViolation] { state.withLock { $0.violations } }

    var requests: [LoopbackRequest] { state.withLock { Array($0.requests.suffix(keptRequests)) } }

    /// Changes the counts, and wakes those who waited for that.
    func count(_ change: (inout LoopbackCounts) -> Void) {
        note { change(&$0.counts) }
    }

    func begin(_ request: LoopbackRequest) {
        note { state in
            state.counts.heads += 1
            // Twice as many are kept as were asked for, so that the first need not be taken away each time.
            if state.requests.count >= 2 * keptRequests { state.requests.removeFirst(keptRequests) }
            state.requests.append(request)
        }
    }

    func end(_ request: LoopbackRequest) {
        note { state in
            if request.isComplete { state.counts.requests += 1 }
            guard let first = state.requests.first?.number else { return }
            let index = request.number - first
            if state.requests.indices.contains(index) { state.requests[index] = request }
        }
    }

    func add(_ violation: LoopbackViolation) {
        note { state in
            state.counts.violations += 1
            if state.violations.count < keptViolations { state.violations.append(violation) }
        }
    }

    func forget() {
        note { state in
            state.requests = []
            state.violations = []
        }
    }

    /// Waits until `isReached` says so of the counts; a task that is cancelled does not wait on.
    func counts(where isReached: @escaping @Sendable (LoopbackCounts) -> Bool) async -> LoopbackCounts {
        let id = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let waiter = Waiter(id: id, isReached: isReached, pass: { continuation.resume() })
                let counts = state.withLock { state in
                    state.waiters.append(waiter)
                    return state.counts
                }
                if Task.isCancelled || isReached(counts) { wake(id) }
            }
        } onCancel: {
            wake(id)
        }
        return counts
    }

    private func wake(_ id: Int) {
        let waiter = state.withLock { state in
            state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0) }
        }
        waiter?.pass()
    }

    private func note(_ change: (inout State) -> Void) {
        let (waiters, counts) = state.withLock { state in
            change(&state)
            return (state.waiters, state.counts)
        }
        // A condition is the test's own code, so it is asked outside the lock.
        for waiter in waiters where waiter.isReached(counts) { wake(waiter.id) }
    }
}
