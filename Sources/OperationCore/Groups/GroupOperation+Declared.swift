// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

// Groups without a body, whose children are added.
extension GroupOperation where ResultType == Void, ErrorType == GroupFailure {
    /// Creates a group without a body, to which you add children before or after the group starts.
    ///
    /// ```swift
    /// let upload = GroupOperation(policy: .collectAll, width: 2)
    /// for number in 0..<10 { try upload.add(ClosureOperation { number }) }
    /// try await upload.run()
    /// ```
    ///
    /// The group ends when all of its children have ended. A group without children ends when it is started.
    ///
    /// - Parameters:
    ///   - policy: The policy that determines the outcome of the group. The default is ``GroupPolicy/failFast``.
    ///   - width: The maximum number of children that run at the same time. The default is `nil`, so only the queue's
    ///     width applies.
    ///   - queue: The queue on which the children run. The default is `nil`, which uses the ``QueueManager`` that holds
    ///     the group. If no ``QueueManager`` holds the group, the children run on a shared queue.
    public convenience init(policy: GroupPolicy = .failFast, width: Int? = nil, on queue: QueueManager? = nil) {
        self.init(GroupEngine(GroupMachine(policy: policy, width: width), queue: queue), collect: { _ in () })
    }
}

extension GroupOperation where ErrorType == GroupFailure {
    /// Creates a group without a body, whose result `collect` makes if the policy says that there is one.
    convenience init(
        _ engine: GroupEngine, collect: @escaping @Sendable (GroupOperation) throws -> ResultType
    ) {
        let conclude: GroupEnd = { operation, verdict in
            let operation = unsafeDowncast(operation, to: GroupOperation.self)
            let collected = verdict == .success ? ThreadNotes.withoutBeginning { try? collect(operation) } : nil
            if let collected { return operation.finish(withResult: collected) }
            let (sourceError, children) = operation.engine.state.withLock { ($0.sourceError, $0.failures) }
            let failure =
                if let sourceError {
                    GroupFailure(group: operation.groupName, sourceError: sourceError, children: children)
                } else {
                    GroupFailure(group: operation.groupName, children: children)
                }
            operation.finish(withError: failure)
        }
        self.init(engine, conclude: conclude)
    }
}

// Methods that create declared groups. `Never` replaces the types that follow from the children.
extension GroupOperation where ResultType == Never, ErrorType == Never {
    /// Creates a group whose result is a tuple of its children's results.
    ///
    /// The children may have different types. If one child fails or is canceled, the group fails and the other children
    /// are canceled.
    ///
    /// - Parameters:
    ///   - child: The operations to run.
    ///   - width: The maximum number of children that run at the same time. The default is `nil`, so only the queue's
    ///     width applies.
    ///   - queue: The queue on which the children run. The default is `nil`, which uses the ``QueueManager`` that holds
    ///     the group. If no ``QueueManager`` holds the group, the children run on a shared queue.
    ///
    /// ```swift
    /// let page = GroupOperation.all(
    ///     ClosureOperation { "title" }, ClosureOperation { 12 })
    /// let (title, count) = try await page.run()
    /// ```
    public static func all<each Value: Sendable, each Failure: Error>(
        _ child: repeat TypedOperation<each Value, each Failure>, width: Int? = nil, on queue: QueueManager? = nil
    ) -> GroupOperation<(repeat each Value), GroupFailure> {
        var children: [ManagedOperation] = []
        for child in repeat each child { children.append(child) }
        let child = (repeat each child)
        return .made(of: children, .failFast, width, queue) { _ in
            (repeat try (each child).resultInGroup())
        }
    }

    /// Creates a group whose result is an array of its children's results, in the order of the children.
    ///
    /// If one child fails or is canceled, the group fails and the other children are canceled.
    ///
    /// - Parameters:
    ///   - children: The operations to run. Children that you add later must also succeed, but the array does not
    ///     contain their results.
    ///   - width: The maximum number of children that run at the same time. The default is `nil`, so only the queue's
    ///     width applies.
    ///   - queue: The queue on which the children run. The default is `nil`, which uses the ``QueueManager`` that holds
    ///     the group. If no ``QueueManager`` holds the group, the children run on a shared queue.
    public static func all<Value, Failure>(
        _ children: [TypedOperation<Value, Failure>], width: Int? = nil, on queue: QueueManager? = nil
    ) -> GroupOperation<[Value], GroupFailure> {
        .made(of: children, .failFast, width, queue) { _ in try children.map { try $0.resultInGroup() } }
    }

    /// Creates a group that combines its children's results into one result.
    ///
    /// If one child fails or is canceled, the group fails and the other children are canceled.
    ///
    /// ```swift
    /// let numbers = (1...4).map { number in ClosureOperation { number * number } }
    /// let sum = try await GroupOperation.all(numbers) { $0.reduce(0, +) }.run()
    /// ```
    ///
    /// - Parameters:
    ///   - children: The operations to run. Children that you add later must also succeed, but the group does not
    ///     combine their results.
    ///   - width: The maximum number of children that run at the same time. The default is `nil`, so only the queue's
    ///     width applies.
    ///   - queue: The queue on which the children run. The default is `nil`, which uses the ``QueueManager`` that holds
    ///     the group. If no ``QueueManager`` holds the group, the children run on a shared queue.
    ///   - combine: The closure that makes the group's result from the children's results, in the order of the
    ///     children. If all children succeed, the group calls the closure once, on any thread. The closure should
    ///     return quickly.
    public static func all<Value, Failure, Combined: Sendable>(
        _ children: [TypedOperation<Value, Failure>], width: Int? = nil, on queue: QueueManager? = nil,
        combine: @escaping @Sendable ([Value]) -> Combined
    ) -> GroupOperation<Combined, GroupFailure> {
        .made(of: children, .failFast, width, queue) { _ in combine(try children.map { try $0.resultInGroup() }) }
    }

    /// Creates a group whose result is an array of its children's outcomes, in the order of the children.
    ///
    /// The group cannot fail. If an operation cannot become a child, the array contains the operation's own outcome. If
    /// this operation has no outcome when the group ends, the array contains a cancellation with the code
    /// `groupRefused` instead.
    ///
    /// - Parameters:
    ///   - children: The operations to run.
    ///   - width: The maximum number of children that run at the same time. The default is `nil`, so only the queue's
    ///     width applies.
    ///   - queue: The queue on which the children run. The default is `nil`, which uses the ``QueueManager`` that holds
    ///     the group. If no ``QueueManager`` holds the group, the children run on a shared queue.
    public static func outcomes<Value, Failure>(
        of children: [TypedOperation<Value, Failure>], width: Int? = nil, on queue: QueueManager? = nil
    ) -> GroupOperation<[OperationOutcome<Value, Failure>], Never> {
        let engine = GroupEngine(GroupMachine(policy: .collectAll, width: width), queue: queue)
        let refusals = engine.addAtFirst(children)
        typealias Group = GroupOperation<[OperationOutcome<Value, Failure>], Never>
        let conclude: GroupEnd = { operation, _ in
            let outcomes = children.enumerated().map { index, child in
                let refusal = refusals[index] ?? OperationSetupError(.inGroup, child)
                return child.outcomeInGroup ?? .cancelled(.groupRefused(refusal))
            }
            unsafeDowncast(operation, to: Group.self).finish(withResult: outcomes)
        }
        return Group(engine, conclude: conclude)
    }

    /// Creates a group whose result is the result of the first child that succeeds.
    ///
    /// When a child has succeeded, the group cancels the other children. If no child succeeds, the group fails.
    ///
    /// - Parameters:
    ///   - children: The operations to run.
    ///   - width: The maximum number of children that run at the same time. The default is `nil`, so only the queue's
    ///     width applies.
    ///   - queue: The queue on which the children run. The default is `nil`, which uses the ``QueueManager`` that holds
    ///     the group. If no ``QueueManager`` holds the group, the children run on a shared queue.
    public static func firstSuccess<Value, Failure>(
        of children: [TypedOperation<Value, Failure>], width: Int? = nil, on queue: QueueManager? = nil
    ) -> GroupOperation<Value, GroupFailure> {
        .made(of: children, .firstSuccess, width, queue) { try result(ofFirst: $0.engine, Value.self, Failure.self) }
    }

    /// Creates a group that succeeds or fails with the first child that ends.
    ///
    /// When a child has ended, the group cancels the other children.
    ///
    /// - Parameters:
    ///   - children: The operations to run.
    ///   - width: The maximum number of children that run at the same time. The default is `nil`, so only the queue's
    ///     width applies.
    ///   - queue: The queue on which the children run. The default is `nil`, which uses the ``QueueManager`` that holds
    ///     the group. If no ``QueueManager`` holds the group, the children run on a shared queue.
    public static func race<Value, Failure>(
        _ children: [TypedOperation<Value, Failure>], width: Int? = nil, on queue: QueueManager? = nil
    ) -> GroupOperation<Value, GroupFailure> {
        .made(of: children, .firstEnd, width, queue) { try result(ofFirst: $0.engine, Value.self, Failure.self) }
    }

    private static func result<Value: Sendable, Failure: Error>(
        ofFirst engine: GroupEngine, _: Value.Type, _: Failure.Type
    ) throws -> Value {
        let winner = engine.state.withLock { $0.winners.first } as? TypedOperation<Value, Failure>
        return try (winner?.outcomeInGroup ?? .cancelled(.requested)).get()
    }

    /// Creates a group whose result is an array with the results of the first `count` children that succeed, in the
    /// order of the children.
    ///
    /// When `count` children have succeeded, the group cancels the other children. The group fails as soon as fewer
    /// than `count` of its children can still succeed.
    ///
    /// - Parameters:
    ///   - count: The number of children that must succeed.
    ///   - children: The operations to run.
    ///   - width: The maximum number of children that run at the same time. The default is `nil`, so only the queue's
    ///     width applies.
    ///   - queue: The queue on which the children run. The default is `nil`, which uses the ``QueueManager`` that holds
    ///     the group. If no ``QueueManager`` holds the group, the children run on a shared queue.
    public static func quorum<Value, Failure>(
        _ count: Int, of children: [TypedOperation<Value, Failure>], width: Int? = nil, on queue: QueueManager? = nil
    ) -> GroupOperation<[Value], GroupFailure> {
        .made(of: children, .quorum(count), width, queue) { group in
            let winners = Set(group.engine.state.withLock { $0.winners }.map { ObjectIdentifier($0.life) })
            return try children.filter { winners.contains(ObjectIdentifier($0.life)) }.map { try $0.resultInGroup() }
        }
    }
}

extension GroupOperation where ErrorType == GroupFailure {
    static func made(
        of children: [ManagedOperation], _ policy: GroupPolicy, _ width: Int?, _ queue: QueueManager?,
        collect: @escaping @Sendable (GroupOperation) throws -> ResultType
    ) -> GroupOperation {
        let machine = GroupMachine(policy: policy, width: width, isFixed: true)
        let group = GroupOperation(GroupEngine(machine, queue: queue), collect: collect)
        group.engine.addAtFirst(children)
        return group
    }
}

extension GroupEngine {
    /// Adds the children of a new group, which fails at its start if it refuses one of them.
    ///
    /// - Returns: The refused children by their indices, with the reasons.
    @discardableResult
    func addAtFirst(_ children: [ManagedOperation]) -> [Int: OperationSetupError] {
        var refusals: [Int: OperationSetupError] = [:]
        for (index, child) in children.enumerated() {
            guard let refusal = adopt(child) else { continue }
            fail(child, refusal)
            refusals[index] = refusal
        }
        return refusals
    }
}
