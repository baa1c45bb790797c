// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

extension ResultOperation {
    /// Makes this operation wait until an operation of any kind has ended, with a rule that applies if the other
    /// operation fails or is canceled.
    ///
    /// - Parameters:
    ///   - upstream: The operation that must end first.
    ///   - rule: The rule that applies if `upstream` fails or is canceled.
    /// - Throws: An ``OperationSetupError`` if this operation was started, or if the dependency would create a cycle.
    public func depend(on upstream: Operation, otherwise rule: DependencyRule<ErrorType>) throws(OperationSetupError) {
        try connect(to: upstream, judge: rule.judge)
    }

    /// Makes this operation wait for another operation and passes the result of that operation to a closure before the
    /// body begins.
    ///
    /// - Parameters:
    ///   - upstream: The operation that produces the result.
    ///   - rule: The rule that applies if `upstream` fails or is canceled.
    ///   - use: The closure that receives this operation and the result. The closure is called on the thread that is
    ///     about to run the body.
    /// - Throws: An ``OperationSetupError`` if this operation was started, or if the dependency would create a cycle.
    public func receive<Input: Sendable, UpstreamError: Error>(
        from upstream: TypedOperation<Input, UpstreamError>,
        otherwise rule: MissingInputRule<Input, ErrorType>,
        _ use: @escaping @Sendable (Self, Input) -> Void
    ) throws(OperationSetupError) {
        let slot = InputSlot<Input>()
        try connect(to: [(upstream, slot.judge(UpstreamError.self, otherwise: rule))]) { operation in
            guard let operation = operation as? Self, let input = slot.take() else {
                return operation.cancelIfUndecided(because: .inputMissing)
            }
            use(operation, input)
        }
    }

    /// Makes this operation wait for several operations and passes all of their results to a closure before the body
    /// begins.
    ///
    /// If one of the operations fails or is canceled, this operation is canceled.
    ///
    /// ```swift
    /// final class Sum: SyncOperation<Int, Never>, @unchecked Sendable {
    ///     var left = 0, right = 0
    ///     override func main() { finish(withResult: left + right) }
    /// }
    /// let left = ClosureOperation { 20 }, right = ClosureOperation { 22 }
    /// let sum = Sum()
    /// try sum.receive(from: left, right) { sum, left, right in
    ///     sum.left = left
    ///     sum.right = right
    /// }
    /// let queue = OperationQueue()
    /// for operation in [left, right, sum] { queue.addOperation(operation) }
    /// print(try await sum.value)  // 42
    /// ```
    ///
    /// - Parameters:
    ///   - upstream: The operations that produce the results.
    ///   - use: The closure that receives this operation and the results. The closure is called once, on the thread
    ///     that is about to run the body.
    /// - Throws: An ``OperationSetupError`` if this operation was started, or if a dependency would create a cycle.
    public func receive<each Input: Sendable, each UpstreamError: Error>(
        from upstream: repeat TypedOperation<each Input, each UpstreamError>,
        then use: @escaping @Sendable (Self, repeat each Input) -> Void
    ) throws(OperationSetupError) {
        let slots = (repeat makeSlot(for: each upstream))
        var sources: [(upstream: Operation, judge: DependencyEdge.Judge)] = []
        for (slot, operation) in repeat (each slots, each upstream) {
            sources.append((operation, judge(of: operation, filling: slot)))
        }
        try connect(to: sources) { operation in
            // Each result is there. Otherwise, this operation would have ended before.
            guard let operation = operation as? Self, let inputs = try? (repeat taken(from: each slots)) else {
                return operation.cancelIfUndecided(because: .inputMissing)
            }
            use(operation, repeat each inputs)
        }
    }

    /// Makes this operation wait for an array of operations and passes the array of their results to a closure before
    /// the body begins.
    ///
    /// - Parameters:
    ///   - upstream: The operations that produce the results.
    ///   - rule: The rule that applies to each operation that fails or is canceled. The default is `.cancel`.
    ///   - use: The closure that receives this operation and the results, in the order of the operations. The closure
    ///     is called on the thread that is about to run the body.
    /// - Throws: An ``OperationSetupError`` if this operation was started, or if a dependency would create a cycle.
    public func receive<Input: Sendable, UpstreamError: Error>(
        fromAll upstream: [TypedOperation<Input, UpstreamError>],
        otherwise rule: MissingInputRule<Input, ErrorType> = .cancel,
        _ use: @escaping @Sendable (Self, [Input]) -> Void
    ) throws(OperationSetupError) {
        let slots = upstream.map { makeSlot(for: $0) }
        let sources = zip(slots, upstream).map { slot, operation in
            (upstream: operation as Operation, judge: slot.judge(UpstreamError.self, otherwise: rule))
        }
        try connect(to: sources) { operation in
            let inputs = slots.compactMap { $0.take() }
            guard let operation = operation as? Self, inputs.count == slots.count else {
                return operation.cancelIfUndecided(because: .inputMissing)
            }
            use(operation, inputs)
        }
    }

    /// Makes this operation wait for another operation and writes the result of that operation to a property before the
    /// body begins.
    ///
    /// OperationKit writes the property on the thread that is about to run the body.
    ///
    /// - Parameters:
    ///   - property: The property of this operation that receives the result.
    ///   - upstream: The operation that produces the result.
    ///   - rule: The rule that applies if `upstream` fails or is canceled. The default is `.cancel`.
    /// - Throws: An ``OperationSetupError`` if this operation was started, or if the dependency would create a cycle.
    public func receive<Input: Sendable, UpstreamError: Error>(
        _ property: any ReferenceWritableKeyPath<Self, Input> & Sendable,
        from upstream: TypedOperation<Input, UpstreamError>,
        otherwise rule: MissingInputRule<Input, ErrorType> = .cancel
    ) throws(OperationSetupError) {
        try receive(from: upstream, otherwise: rule) { $0[keyPath: property] = $1 }
    }

    /// Makes this operation wait for another operation and writes the result of that operation to an optional property
    /// before the body begins.
    ///
    /// OperationKit writes the property on the thread that is about to run the body.
    ///
    /// - Parameters:
    ///   - property: The property of this operation that receives the result.
    ///   - upstream: The operation that produces the result.
    ///   - rule: The rule that applies if `upstream` fails or is canceled. The default is `.cancel`.
    /// - Throws: An ``OperationSetupError`` if this operation was started, or if the dependency would create a cycle.
    public func receive<Input: Sendable, UpstreamError: Error>(
        _ property: any ReferenceWritableKeyPath<Self, Input?> & Sendable,
        from upstream: TypedOperation<Input, UpstreamError>,
        otherwise rule: MissingInputRule<Input, ErrorType> = .cancel
    ) throws(OperationSetupError) {
        try receive(from: upstream, otherwise: rule) { $0[keyPath: property] = $1 }
    }

    /// Makes this operation wait for another operation and passes the outcome of that operation to a closure before the
    /// body begins.
    ///
    /// The body runs regardless of the outcome of the other operation.
    ///
    /// - Parameters:
    ///   - upstream: The operation that must end first.
    ///   - use: The closure that receives this operation and the outcome. The closure is called on the thread that is
    ///     about to run the body.
    /// - Throws: An ``OperationSetupError`` if this operation was started, or if the dependency would create a cycle.
    public func receiveOutcome<Input: Sendable, UpstreamError: Error>(
        of upstream: TypedOperation<Input, UpstreamError>,
        _ use: @escaping @Sendable (Self, OperationOutcome<Input, UpstreamError>) -> Void
    ) throws(OperationSetupError) {
        let slot = InputSlot<OperationOutcome<Input, UpstreamError>>()
        let judge: DependencyEdge.Judge = { upstream in
            if let outcome = (upstream as? TypedOperation<Input, UpstreamError>)?.outcome { slot.put(outcome) }
            return .proceed
        }
        try connect(to: [(upstream, judge)]) { operation in
            guard let operation = operation as? Self, let outcome = slot.take() else {
                return operation.cancelIfUndecided(because: .inputMissing)
            }
            use(operation, outcome)
        }
    }

    private func judge<Input: Sendable, UpstreamError: Error>(
        of upstream: TypedOperation<Input, UpstreamError>, filling slot: InputSlot<Input>
    ) -> DependencyEdge.Judge {
        slot.judge(UpstreamError.self, otherwise: MissingInputRule<Input, ErrorType>.cancel)
    }
}

private struct MissingInput: Error {}

private func makeSlot<Input, UpstreamError>(for upstream: TypedOperation<Input, UpstreamError>) -> InputSlot<Input> {
    InputSlot()
}

private func taken<Input>(from slot: InputSlot<Input>) throws(MissingInput) -> Input {
    guard let input = slot.take() else { throw MissingInput() }
    return input
}

extension ManagedOperation {
    /// Adds dependencies on all sources or on none, and an input that is used when they have ended.
    final func connect(
        to sources: [(upstream: Operation, judge: DependencyEdge.Judge)],
        feeding feed: @escaping @Sendable (ManagedOperation) -> Void
    ) throws(OperationSetupError) {
        let feed = feeding(feed)
        guard let last = sources.last else { return try addInput(feed) }
        var added: [DependencyEdge] = []
        do throws(OperationSetupError) {
            for source in sources.dropLast() { added.append(try connect(to: source.upstream, judge: source.judge)) }
            let input = NewDependencyInput(earlierEdges: added, feed: feed)
            try connect(to: last.upstream, judge: last.judge, input: input)
        } catch {
            for (edge, source) in zip(added, sources) { remove(edge, to: source.upstream) }
            throw error
        }
    }

    /// Feeds the mapped operation itself, although the edges are those of its original.
    private func feeding(
        _ feed: @escaping @Sendable (ManagedOperation) -> Void
    ) -> @Sendable (ManagedOperation) -> Void {
        guard original != nil else { return feed }
        return { [weak self] _ in if let self { feed(self) } }
    }

    /// Adds an input that comes from no dependency.
    private func addInput(_ feed: @escaping @Sendable (ManagedOperation) -> Void) throws(OperationSetupError) {
        let isTooLate = core.withLock { core in
            guard core.machine.acceptsDependencies else { return core.machine.ending == nil || core.machine.isStarted }
            core.add(NewDependencyInput(feed: feed), lastEdge: nil)
            return false
        }
        if isTooLate { throw .alreadyStarted(displayName, dependency: "inputs") }
    }
}

/// The result of one dependency, kept until the operation that receives it begins.
final class InputSlot<Input: Sendable>: Sendable {
    private let value = Locked<Input?>(nil)

    func put(_ new: Input) {
        var new: Input? = new
        value.withLock { swap(&$0, &new) }
    }

    func take() -> Input? { value.withLock { exchange(&$0, with: nil) } }

    /// Returns a judge that takes the result of the upstream operation, or applies the rule if there is none.
    func judge<UpstreamError: Error, ErrorType: Error>(
        _ type: UpstreamError.Type, otherwise rule: MissingInputRule<Input, ErrorType>
    ) -> DependencyEdge.Judge {
        { [self] upstream in
            if let result = (upstream as? TypedOperation<Input, UpstreamError>)?.outcome?.result {
                put(result)
                return .proceed
            }
            guard let reason = UnsuccessfulDependency(upstream) else { return .proceed }
            switch rule.choice {
            case .cancel: return .cancel(reason.cause)
            case .fail(let makeError): return reason.failing(with: makeError)
            case .use(let value):
                put(value)
                return .proceed
            }
        }
    }
}
