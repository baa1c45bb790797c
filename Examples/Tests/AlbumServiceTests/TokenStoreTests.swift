// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Synchronization
import Testing

/// Loads a token in the background, and keeps it while a user is signed in.
private final class TokenStore: Sendable {
    private let queue: QueueManager
    private let isCareful: Bool
    private let state = Mutex<(token: String?, load: ClosureOperation<Void, Never>?)>((nil, nil))

    init(_ queue: QueueManager, isCareful: Bool) {
        (self.queue, self.isCareful) = (queue, isCareful)
    }

    var token: String? { state.withLock { $0.token } }

    func signIn() {
        let load = ClosureOperation { [self] in state.withLock { $0.token = "token" } }
        state.withLock { $0.load = load }
        try? queue.add(load)
    }

    func signOut() {
        let load = state.withLock { state in
            state.token = nil
            return state.load
        }
        // A careless implementation forgets that a token may still be loading.
        if isCareful { load?.cancel() }
    }
}

/// Searches for a race in user code by exploring all orders of events.
@Suite(.timeLimit(.minutes(2)))
struct TokenStoreTests {
    private func scene(_ explorer: inout Explorer, isCareful: Bool) throws {
        let workers = ManualWorkers()
        let store = TokenStore(workers.makeQueue(width: 1), isCareful: isCareful)
        var isSignedIn = false
        explorer.add(
            "user",
            {
                store.signIn()
                isSignedIn = true
            },
            {
                store.signOut()
                isSignedIn = false
            })
        explorer.add("thread") { _ in workers.step() ? true : nil }
        explorer.run()
        try explorer.expect(isSignedIn || store.token == nil, "No user is signed in, but there is a token.")
    }

    @Test func `after signing out there is no token, in any order of events`() throws {
        try Explorer.explore(rounds: 1_000) { try scene(&$0, isCareful: true) }
    }

    @Test func `a store that does not cancel its load is found to be wrong`() throws {
        let failure = #expect(throws: ExplorationFailure.self) {
            try Explorer.explore(rounds: 1_000) { try scene(&$0, isCareful: false) }
        }
        #expect(failure?.reason == "No user is signed in, but there is a token.")
        #expect(failure?.order.prefix(3) == ["user", "user", "thread"])
    }
}
