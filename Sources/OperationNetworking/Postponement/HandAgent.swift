// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Puts one operation aside where the rule of a list says so.
final class HandAgent: AttemptPolicy {
    private struct State {
        var place: UInt64?
        var isForgotten = false
    }

    let list: PostponedOperations
    private let state = Locked(State())

    init(_ list: PostponedOperations) {
        self.list = list
    }

    var rank: Int { AttemptRank.hand }

    func decide(
        _ report: AttemptReport, for host: any AttemptHost, _ answer: @escaping @Sendable (AttemptAnswer?) -> Void
    ) {
        guard list.takes(FailedAttempt(report)), report.request?.body.canBeSentAgain != false else {
            return answer(nil)
        }
        let turns = TurnTaking()
        let id = list.add(host) { said in turns.second { answer(said) } }
        let isForgotten = state.withLock { state in
            state.place = id
            return state.isForgotten
        }
        if isForgotten { list.remove(id) }
        turns.first { answer(AttemptAnswer(.park(list.waitReason), note: "\(list.waitReason)")) }
    }

    func forget() {
        let place = state.withLock { state in
            state.isForgotten = true
            return exchange(&state.place, with: nil)
        }
        if let place { list.remove(place) }
    }
}

// To be set before the start.
extension AnyNetworkOperation {
    /// Where the operation is put aside if the list's rule says so; nowhere if nil, as from the start.
    public var postponed: PostponedOperations? {
        get { networkAttempts.policy(of: HandAgent.self)?.list }
        set {
            guard maySet("list (postponed)") else { return }
            networkAttempts.set(newValue.map(HandAgent.init))
        }
    }
}
