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
            setAdmission("categories") { $0.categories = unique }
        }
    }

    package final var throttle: ThrottleRule? {
        get { core.withLock { $0.extras?.admission?.throttle } }
        set { setAdmission("throttle") { $0.throttle = newValue } }
    }

    package final func addCondition(_ condition: OperationCondition) {
        setAdmission("condition \"\(condition.name)\"") { $0.conditions.append(condition) }
    }

    /// Changes a knob that only counts until the operation asks to be admitted.
    private func setAdmission(_ name: String, _ change: (inout OperationAdmission) -> Void) {
        var old: OperationAdmission?
        let isLate = core.withLock { core in
            guard !core.isStartUnderWay, core.machine.ending == nil else { return true }
            var admission = core.extras?.admission ?? OperationAdmission()
            guard !admission.machine.isUnderWay else { return true }
            // What is replaced goes after the lock.
            old = admission
            change(&admission)
            core.need().admission = admission
            return false
        }
        withExtendedLifetime(old) {}
        if isLate {
            OperationDiagnostics.report(
                .admission, by: self,
                "Its \(name) was set after the start, or while the operation asks for admission, and has no effect. "
                    + "Set it before the operation is started or given to a queue.")
        }
    }
}
