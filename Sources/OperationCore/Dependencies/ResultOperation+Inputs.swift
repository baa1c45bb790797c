// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

extension ResultOperation {
    /// Waits for an operation of any kind.
    ///
    /// - Parameters:
    ///   - upstream: The operation to wait for.
    ///   - rule: What becomes of this operation when that one fails or is cancelled.
    /// - Throws: If this one was started, or if the two would wait for each other; the error names the cycle.
    public func depend(on upstream: Operation, otherwise rule: DependencyRule<ErrorType>) throws(DependencyError) {
        try connect(to: upstream, judge: rule.judge)
    }

    /// Waits for an operation and is given its result before the body begins.
    ///
    /// - Parameters:
    ///   - upstream: The operation that gives the result.
    ///   - rule: What becomes of this operation when there is no result.
    ///   - use: Takes the result, on the thread that is about to run the body.
    /// - Throws: If this one was started, or if the two would wait for each other; the error names the cycle.
    public func receive<Input: Sendable, UpstreamError: Error>(
        from upstream: TypedOperation<Input, UpstreamError>,
        otherwise rule: MissingInputRule<Input, ErrorType>,
        _ use: @escaping @Sendable (Self, Input) -> Void
    ) throws(DependencyError) {
        let slot = InputSlot<Input>()
        try connect(to: [(upstream, slot.judge(UpstreamError.self, otherwise: rule))]) { operation in
            guard let operation = operation as? Self, let input = slot.take() else {
                return operation.cancelIfUndecided(because: .inputMissing)
            }
            use(operation, input)
        }
    }

    /// Waits for several operations and is given all their results at once before the body begins; is cancelled if one
    /// of them gives none.
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
    /// - Throws: If this one was started, or if two would wait for each other; the error names the cycle.
    public func receive<each Input: Sendable, each UpstreamError: Error>(
        from upstream: repeat TypedOperation<each Input, each UpstreamError>,
        then use: @escaping @Sendable (Self, repeat each Input) -> Void
    ) throws(DependencyError) {
        try receive(from: repeat each upstream, rules: repeat cancelRule(for: each upstream), then: use)
    }

    /// Waits for several operations and is given all their results at once before the body begins, each with a rule of
    /// its own: `receive(from: name, photo, rules: .cancel, .use(placeholder)) { … }`.
    ///
    /// - Throws: If this one was started, or if two would wait for each other; the error names the cycle.
    public func receive<each Input: Sendable, each UpstreamError: Error>(
        from upstream: repeat TypedOperation<each Input, each UpstreamError>,
        rules: repeat MissingInputRule<each Input, ErrorType>,
        then use: @escaping @Sendable (Self, repeat each Input) -> Void
    ) throws(DependencyError) {
        let slots = (repeat makeSlot(for: each upstream))
        var sources: [(upstream: Operation, judge: DependencyEdge.Judge)] = []
        for (slot, operation, rule) in repeat (each slots, each upstream, each rules) {
            sources.append((operation, judge(of: operation, filling: slot, otherwise: rule)))
        }
        try connect(to: sources) { operation in
            // Each upstream operation gave its result or its rule a value, else this one would have ended and not be here.
            guard let operation = operation as? Self, let inputs = try? (repeat taken(from: each slots)) else {
                return operation.cancelIfUndecided(because: .inputMissing)
            }
            use(operation, repeat each inputs)
        }
    }

    /// Waits for many operations and is given all their results, in their order, before the body begins.
    ///
    /// - Parameters:
    ///   - upstream: The operations that give the results.
    ///   - rule: What takes the place of each result that is missing.
    ///   - use: Takes the results, on the thread that is about to run the body.
    /// - Throws: If this one was started, or if two would wait for each other; the error names the cycle.
    public func receive<Input: Sendable, UpstreamError: Error>(
        fromAll upstream: [TypedOperation<Input, UpstreamError>],
        otherwise rule: MissingInputRule<Input, ErrorType> = .cancel,
        _ use: @escaping @Sendable (Self, [Input]) -> Void
    ) throws(DependencyError) {
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

    /// Waits for an operation and writes its result to a property before the body begins.
    public func receive<Input: Sendable, UpstreamError: Error>(
        _ property: any ReferenceWritableKeyPath<Self, Input> & Sendable,
        from upstream: TypedOperation<Input, UpstreamError>,
        otherwise rule: MissingInputRule<Input, ErrorType> = .cancel
    ) throws(DependencyError) {
        try receive(from: upstream, otherwise: rule) { $0[keyPath: property] = $1 }
    }

    /// Waits for an operation and writes its result to an optional property before the body begins.
    public func receive<Input: Sendable, UpstreamError: Error>(
        _ property: any ReferenceWritableKeyPath<Self, Input?> & Sendable,
        from upstream: TypedOperation<Input, UpstreamError>,
        otherwise rule: MissingInputRule<Input, ErrorType> = .cancel
    ) throws(DependencyError) {
        try receive(from: upstream, otherwise: rule) { $0[keyPath: property] = $1 }
    }

    /// Waits for an operation and is given its outcome, whatever it is, before the body begins.
    public func receiveOutcome<Input: Sendable, UpstreamError: Error>(
        of upstream: TypedOperation<Input, UpstreamError>,
        _ use: @escaping @Sendable (Self, OperationOutcome<Input, UpstreamError>) -> Void
    ) throws(DependencyError) {
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
        of upstream: TypedOperation<Input, UpstreamError>, filling slot: InputSlot<Input>,
        otherwise rule: MissingInputRule<Input, ErrorType>
    ) -> DependencyEdge.Judge {
        slot.judge(UpstreamError.self, otherwise: rule)
    }

    private func cancelRule<Input: Sendable, UpstreamError: Error>(
        for upstream: TypedOperation<Input, UpstreamError>
    ) -> MissingInputRule<Input, ErrorType> {
        .cancel
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
