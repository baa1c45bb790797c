// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// The policy.
extension GroupMachine {
    func wins(_ ending: LifecycleMachine.Ending) -> Bool {
        switch policy.rule {
        case .firstEnd: true
        case .firstSuccess, .quorum: ending == .success
        case .failFast, .collectAll, .bodyDecides: false
        }
    }

    func verdictAtEnd(_ ending: LifecycleMachine.Ending) -> Verdict? {
        switch policy.rule {
        case .failFast: ending == .success ? nil : .failure
        case .firstSuccess: ending == .success ? .success : nil
        case .firstEnd: ending == .success ? .success : .failure
        case .quorum(let count):
            if successes >= count { .success } else if isFixed, successes + present < count { .failure } else { nil }
        case .collectAll, .bodyDecides: nil
        }
    }

    /// What it comes to if no child is left and nobody decided.
    var verdictAtRest: Verdict {
        switch policy.rule {
        case .failFast, .bodyDecides: .success
        case .collectAll: failures == 0 ? .success : .failure
        case .firstSuccess, .firstEnd: .failure
        case .quorum(let count): successes >= count ? .success : .failure
        }
    }
}
