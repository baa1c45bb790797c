// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What an operation waits for whose dependencies have ended: for those who explain it to people.
package enum AdmissionStanding: Sendable {
    /// Nothing of the kind: it needs no admission, does not ask for it yet, or has it.
    case none
    /// That these conditions are found out.
    case evaluating([String])
    /// That the key may run: from that moment on, or when this operation has ended.
    case throttled(key: String, until: OperationInstant, runner: ManagedOperation?)
    /// That these categories are given back by those that hold them, or that those before it in line were served.
    case categories([OperationCategory])
}

extension ManagedOperation {
    package final var admissionStanding: AdmissionStanding {
        let (step, admission) = core.withLock { core in
            (core.extras?.admission?.machine.currentStep, core.extras?.admission)
        }
        guard let step, let admission else { return .none }
        switch step {
        case .conditions: return .evaluating(admission.conditions.map(\.name))
        case .throttle:
            guard let rule = admission.throttle else { return .none }
            let until = rule.registry.nextRun(of: rule.key) ?? rule.registry.clock.now
            return .throttled(key: rule.key, until: until, runner: rule.registry.runner(of: rule.key))
        case .categories: return .categories(admission.categories)
        }
    }
}
