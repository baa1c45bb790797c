// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

// What is public of this is in CommonOperationMembers+Admission.
extension ManagedOperation {
    package final var conditions: [OperationCondition] { core.withLock { $0.extras?.admission?.conditions ?? [] } }

    package final var categories: [OperationCategory] {
        get { core.withLock { $0.extras?.admission?.categories ?? [] } }
        set {
            var seen: Set<OperationCategory> = []
            let unique = newValue.filter { seen.insert($0).inserted }
            setAdmission("categories") { exchange(&$0.categories, with: unique) }
        }
    }

    package final var throttle: ThrottleRule? {
        get { core.withLock { $0.extras?.admission?.throttle } }
        set { setAdmission("throttle") { exchange(&$0.throttle, with: newValue) } }
    }

    package final func addCondition(_ condition: OperationCondition) {
        setAdmission("condition \"\(condition.name)\"") { $0.conditions.append(condition) }
    }

    /// Changes a knob that only counts until the operation asks to be admitted.
    ///
    /// - Parameter change: Makes the change and returns what it replaced, which is released outside the lock.
    private func setAdmission<Replaced>(
        _ name: @autoclosure () -> String, _ change: (inout OperationAdmission) -> Replaced
    ) {
        let replaced = core.withLock { core -> Replaced? in
            guard !core.isStartUnderWay, core.machine.ending == nil else { return nil }
            let extras = core.need()
            // The value is taken out and put back, because the cost of a copy would grow with the number of conditions.
            var admission = exchange(&extras.admission, with: nil) ?? OperationAdmission()
            defer { extras.admission = admission }
            return admission.machine.isUnderWay ? nil : change(&admission)
        }
        if replaced == nil {
            OperationDiagnostics.report(
                .admission, by: self,
                "Its \(name()) was set after the start, or while the operation asks for admission, and has no effect. "
                    + "Set it before the operation is started or given to a queue.")
        }
    }
}
