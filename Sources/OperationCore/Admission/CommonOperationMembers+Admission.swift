// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension CommonOperationMembers {
    private var operation: ManagedOperation { self }

    /// The conditions that must hold for the operation to begin, in the order in which they are looked at.
    public var conditions: [OperationCondition] { operation.conditions }

    /// Adds a condition, which is looked at when the dependencies have ended, after those that are there.
    ///
    /// Add it before the operation is started or given to a queue.
    public func addCondition(_ condition: OperationCondition) { operation.addCondition(condition) }

    /// Adds a condition: see ``OperationCondition``.
    public func addCondition(
        _ name: String,
        _ evaluate: @escaping @Sendable (OperationCondition.Context) async -> OperationCondition.Verdict
    ) {
        operation.addCondition(OperationCondition(name, evaluate))
    }

    /// What the operation holds while it runs, and waits for if others hold it: nothing unless you set it.
    ///
    /// Set it before the operation is started or given to a queue. One that is named twice counts once.
    public var categories: [OperationCategory] {
        get { operation.categories }
        set { operation.categories = newValue }
    }

    /// The least time between two runs of the same kind: none unless you set it.
    ///
    /// Set it before the operation is started or given to a queue.
    public var throttle: ThrottleRule? {
        get { operation.throttle }
        set { operation.throttle = newValue }
    }

    /// The moment from which the key of ``throttle`` may run again, on the clock of its register; nil if it may now.
    public var nextRun: OperationInstant? { operation.throttle.flatMap { $0.registry.nextRun(of: $0.key) } }
}
