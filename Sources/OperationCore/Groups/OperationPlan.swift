// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Work that is described once, as a value, and run as often as there are inputs for it.
///
/// ```swift
/// let user = OperationPlan { (id: Int) in TaskOperation { () async throws -> String in "user \(id)" } }
/// let letters = OperationPlan { (name: String) in ClosureOperation { name.count } }
///
/// let plan = user.retry(atMost: 2).then(letters)
/// for id in 1...3 { print(try await plan.operation(for: id).run()) }
/// ```
///
/// Its steps are makers of operations: from an input to a new operation of whatever kind. A group is one, too, with all
/// that groups can be, and so is what a pipeline makes, `then { names in OperationPipeline(names)… .operation() }`. The
/// other way round a stage of a pipeline, or a map, takes a plan: `stage(width: 4) { plan.operation(for: $0) }`.
///
/// A plan runs nothing by itself and holds no operation: ``operation(for:width:on:)`` makes them anew.
public struct OperationPlan<Input: Sendable, Output: Sendable>: Sendable {
    private let body: @Sendable (Input, GroupScope) async throws -> Output

    private init(body: @escaping @Sendable (Input, GroupScope) async throws -> Output) { self.body = body }

    /// Makes a plan of one step.
    ///
    /// - Parameter make: Makes the operation; called on any thread, once for each run.
    public init<Failure>(_ make: @escaping @Sendable (Input) -> TypedOperation<Output, Failure>) {
        body = { input, group in try await group.run(make(input)) }
    }

    /// Makes a group that carries the plan out.
    ///
    /// Where it runs, and how it ends, is as for each ``GroupOperation``: a step that gives no result ends it, with an
    /// error that names the step's operation.
    ///
    /// - Parameters:
    ///   - input: What to carry it out with.
    ///   - width: How many operations may run at once; nil for as many as their queue allows.
    ///   - queue: Where they run; nil for the queue that holds the group.
    public func operation(
        for input: Input, width: Int? = nil, on queue: QueueManager? = nil
    ) -> GroupOperation<Output, GroupFailure> {
        let body = body
        return GroupOperation(width: width, on: queue) { group in try await body(input, group) }
    }
}

// One after the other.
extension OperationPlan {
    /// The plan with a step behind it, whose operation is made of the result.
    public func then<Next, Failure>(
        _ make: @escaping @Sendable (Output) -> TypedOperation<Next, Failure>
    ) -> OperationPlan<Input, Next> {
        then(OperationPlan<Output, Next>(make))
    }

    /// The plan with another behind it.
    public func then<Next>(_ next: OperationPlan<Output, Next>) -> OperationPlan<Input, Next> {
        let body = body
        return OperationPlan<Input, Next>(body: { input, group in
            try await next.body(try await body(input, group), group)
        })
    }

    /// The plan with a result that is converted; an error that `convert` throws fails it.
    public func mapResult<Converted>(
        _ convert: @escaping @Sendable (Output) throws -> Converted
    ) -> OperationPlan<Input, Converted> {
        let body = body
        return OperationPlan<Input, Converted>(body: { input, group in try convert(try await body(input, group)) })
    }
}

// Side by side.
extension OperationPlan {
    /// Both plans with the same input, at the same time; the first that fails cancels the other.
    public func and<Other>(_ other: OperationPlan<Input, Other>) -> OperationPlan<Input, (Output, Other)> {
        OperationPlan<Input, (Output, Other)> { input in
            GroupOperation.all(operation(for: input), other.operation(for: input))
        }
    }

    /// The first result that one of several plans gives; the others are cancelled then.
    public static func firstSuccess(of plans: [OperationPlan]) -> OperationPlan {
        OperationPlan { input in GroupOperation.firstSuccess(of: plans.map { $0.operation(for: input) }) }
    }
}

extension OperationPlan where Output == Never {
    /// Several plans with the same input, at the same time, as a tuple of their results; the first that fails cancels
    /// the others.
    ///
    /// ```swift
    /// let title = OperationPlan { (id: Int) in ClosureOperation { "title \(id)" } }
    /// let count = OperationPlan { (id: Int) in ClosureOperation { id * 2 } }
    /// let page = OperationPlan.all(title, count)
    /// let (text, number) = try await page.operation(for: 7).run()
    /// ```
    public static func all<each Value: Sendable>(
        _ plan: repeat OperationPlan<Input, each Value>
    ) -> OperationPlan<Input, (repeat each Value)> {
        typealias Group = GroupOperation<(repeat each Value), GroupFailure>
        return OperationPlan<Input, (repeat each Value)> { (input: Input) -> Group in
            let group = (repeat (each plan).operation(for: input))
            var children: [ManagedOperation] = []
            for child in repeat each group { children.append(child) }
            return Group.made(of: children, .failFast, nil, nil) { _ in
                (repeat try ((each group).outcomeInGroup ?? .cancelled(.requested)).get())
            }
        }
    }
}

extension OperationPlan where Output: Sequence, Output.Element: Sendable {
    /// The plan, and then another for each element of its result, so many at a time; the results come in order.
    public func forEach<Value>(
        width: Int, _ plan: OperationPlan<Output.Element, Value>
    ) -> OperationPlan<Input, [Value]> {
        then { elements in GroupOperation.map(elements, width: width) { plan.operation(for: $0) } }
    }

    /// The plan, and then an operation for each element of its result, so many at a time; the results come in order.
    public func forEach<Value, Failure>(
        width: Int, _ make: @escaping @Sendable (Output.Element) -> TypedOperation<Value, Failure>
    ) -> OperationPlan<Input, [Value]> {
        then { elements in GroupOperation.map(elements, width: width, make) }
    }
}

extension OperationPlan where Output: AsyncSequence, Output.Element: Sendable {
    /// The plan, and then another for each element of the asynchronous sequence that is its result, so many at a time,
    /// while the sequence is read; the results come in order.
    public func forEach<Value>(
        width: Int, _ plan: OperationPlan<Output.Element, Value>
    ) -> OperationPlan<Input, [Value]> {
        then { elements in GroupOperation.map(elements, width: width) { plan.operation(for: $0) } }
    }

    /// The plan, and then an operation for each element of the asynchronous sequence that is its result, so many at a
    /// time, while the sequence is read; the results come in order.
    public func forEach<Value, Failure>(
        width: Int, _ make: @escaping @Sendable (Output.Element) -> TypedOperation<Value, Failure>
    ) -> OperationPlan<Input, [Value]> {
        then { elements in GroupOperation.map(elements, width: width, make) }
    }
}

// Where it fails.
extension OperationPlan {
    /// The plan with a way out: `hook` is asked when it gives no result, as in ``GroupOperation/recover(atMost:_:)``.
    public func recover(
        atMost limit: Int = 1,
        _ hook: @escaping @Sendable (FailedChild<Output>, Input) async throws -> ChildRecovery<Output>
    ) -> OperationPlan {
        OperationPlan(body: { input, group in
            try await group.run(operation(for: input), recoveringAtMost: limit) { try await hook($0, input) }
        })
    }

    /// The plan, begun anew so many times where it gives no result, with the same input.
    ///
    /// That is so, too, where something in it was cancelled by itself; cancelled as a whole, it is not begun anew.
    public func retry(atMost limit: Int) -> OperationPlan {
        limit > 0 ? recover(atMost: limit) { _, input in .operation(operation(for: input)) } : self
    }
}
