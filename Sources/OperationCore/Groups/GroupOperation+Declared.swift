// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// Groups without a body, whose children are added.
extension GroupOperation where ResultType == Void, ErrorType == GroupFailure {
    /// Makes a group of the children that are added to it, before or while it runs.
    ///
    /// ```swift
    /// let upload = GroupOperation(policy: .collectAll, width: 2)
    /// for number in 0..<10 { try upload.add(ClosureOperation { number }) }
    /// try await upload.run()
    /// ```
    ///
    /// It ends when no child is left: without any, at its start.
    ///
    /// - Parameters:
    ///   - policy: What the ends of the children make of the group.
    ///   - width: How many children may run at once; nil for as many as their queue allows.
    ///   - queue: Where the children run; nil for the queue that holds the group.
    public convenience init(policy: GroupPolicy = .failFast, width: Int? = nil, on queue: QueueManager? = nil) {
        self.init(GroupEngine(GroupMachine(policy: policy, width: width), queue: queue)) { _ in () }
    }
}

extension GroupOperation where ErrorType == GroupFailure {
    /// A group without a body: `collect` makes the result when the policy says that there is one.
    convenience init(
        _ engine: GroupEngine, collect: @escaping @Sendable (GroupOperation) throws -> ResultType
    ) {
        let work = Work(conclude: { operation, verdict in
            if verdict == .success, let result = try? collect(operation) { return operation.finish(withResult: result) }
            let (sourceError, children) = operation.engine.state.withLock { ($0.sourceError, $0.failures) }
            let failure =
                if let sourceError {
                    GroupFailure(group: operation.groupName, sourceError: sourceError, children: children)
                } else {
                    GroupFailure(group: operation.groupName, children: children)
                }
            operation.finish(withError: failure)
        })
        self.init(engine, work)
    }
}

// The ways to make them. `Never` stands for types that follow from the children.
extension GroupOperation where ResultType == Never, ErrorType == Never {
    /// A group of children of any types, whose result is the tuple of their results; the first that fails fails it.
    ///
    /// ```swift
    /// let page = GroupOperation.all(ClosureOperation { "title" }, ClosureOperation { 12 })
    /// let (title, count) = try await page.run()
    /// ```
    public static func all<each Value: Sendable, each Failure: Error>(
        _ child: repeat TypedOperation<each Value, each Failure>, width: Int? = nil, on queue: QueueManager? = nil
    ) -> GroupOperation<(repeat each Value), GroupFailure> {
        var children: [ManagedOperation] = []
        for child in repeat each child { children.append(child) }
        let child = (repeat each child)
        return .made(of: children, .failFast, width, queue) { _ in
            (repeat try result(of: each child))
        }
    }

    private static func result<Value, Failure>(of child: TypedOperation<Value, Failure>) throws -> Value {
        try (child.outcomeInGroup ?? .cancelled(.requested)).get()
    }

    /// A group whose result is those of its children, in their order; the first that fails fails it.
    ///
    /// - Parameters:
    ///   - children: What to run. Children that are added later count, but give no part of the result.
    ///   - width: How many children may run at once; nil for as many as their queue allows.
    ///   - queue: Where the children run; nil for the queue that holds the group.
    public static func all<Value, Failure>(
        _ children: [TypedOperation<Value, Failure>], width: Int? = nil, on queue: QueueManager? = nil
    ) -> GroupOperation<[Value], GroupFailure> {
        .made(of: children, .failFast, width, queue) { _ in try children.map { try result(of: $0) } }
    }

    /// A group whose result is made of those of its children; the first that fails fails it.
    ///
    /// ```swift
    /// let numbers = (1...4).map { number in ClosureOperation { number * number } }
    /// let sum = try await GroupOperation.all(numbers) { $0.reduce(0, +) }.run()
    /// ```
    ///
    /// - Parameters:
    ///   - children: What to run. Children that are added later count, but give no part of the result.
    ///   - width: How many children may run at once; nil for as many as their queue allows.
    ///   - queue: Where the children run; nil for the queue that holds the group.
    ///   - combine: Makes the result of those of the children, which come in the order of the children. Called once, on
    ///     any thread, and not at all if a child gave none. It should be brief: the group's place is held meanwhile.
    public static func all<Value, Failure, Combined: Sendable>(
        _ children: [TypedOperation<Value, Failure>], width: Int? = nil, on queue: QueueManager? = nil,
        combine: @escaping @Sendable ([Value]) -> Combined
    ) -> GroupOperation<Combined, GroupFailure> {
        .made(of: children, .failFast, width, queue) { _ in combine(try children.map { try result(of: $0) }) }
    }

    /// A group whose result is what became of each of its children, in their order: it does not fail.
    public static func outcomes<Value, Failure>(
        of children: [TypedOperation<Value, Failure>], width: Int? = nil, on queue: QueueManager? = nil
    ) -> GroupOperation<[OperationOutcome<Value, Failure>], Never> {
        let engine = GroupEngine(GroupMachine(policy: .collectAll, width: width), queue: queue)
        let refusals = engine.addAtFirst(children)
        return GroupOperation<[OperationOutcome<Value, Failure>], Never>(
            engine,
            .init(conclude: { operation, _ in
                let outcomes = children.enumerated().map { index, child in
                    let refusal = refusals[index] ?? GroupError(.inGroup, child)
                    return child.outcomeInGroup ?? .cancelled(.groupRefused(refusal))
                }
                operation.finish(withResult: outcomes)
            }))
    }

    /// A group whose result is the first that a child gives; the others are cancelled then.
    ///
    /// It fails if none gives one.
    public static func firstSuccess<Value, Failure>(
        of children: [TypedOperation<Value, Failure>], width: Int? = nil, on queue: QueueManager? = nil
    ) -> GroupOperation<Value, GroupFailure> {
        .made(of: children, .firstSuccess, width, queue) { try result(ofFirst: $0.engine, Value.self, Failure.self) }
    }

    /// A group that ends as the first of its children does, with that one's result or error; the others are cancelled.
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

    /// A group whose result is the first `count` that its children give, in the order of the children; the others are
    /// cancelled then.
    ///
    /// It fails as soon as so many can no longer come.
    public static func quorum<Value, Failure>(
        _ count: Int, of children: [TypedOperation<Value, Failure>], width: Int? = nil, on queue: QueueManager? = nil
    ) -> GroupOperation<[Value], GroupFailure> {
        .made(of: children, .quorum(count), width, queue) { group in
            let winners = Set(group.engine.state.withLock { $0.winners }.map { ObjectIdentifier($0.life) })
            return try children.filter { winners.contains(ObjectIdentifier($0.life)) }.map { try result(of: $0) }
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
    /// Adds the children of a new group; one that cannot be one fails the group at its start.
    ///
    /// - Returns: Which cannot, and why.
    @discardableResult
    func addAtFirst(_ children: [ManagedOperation]) -> [Int: GroupError] {
        var refusals: [Int: GroupError] = [:]
        for (index, child) in children.enumerated() {
            guard let refusal = adopt(child) else { continue }
            fail(child, refusal)
            refusals[index] = refusal
        }
        return refusals
    }
}
