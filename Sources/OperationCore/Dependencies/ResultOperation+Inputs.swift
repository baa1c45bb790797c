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

/// What feeds the results of one or more dependencies into an operation just before its body.
///
/// It goes with its edges: taken back are all of them and it, or it can no longer be given.
struct DependencyInput {
    private var edgeCount: Int
    /// Whether some of its edges were taken back and others were not.
    private(set) var isBroken = false
    let feed: @Sendable (ManagedOperation) -> Void

    init(edgeCount: Int, feed: @escaping @Sendable (ManagedOperation) -> Void) {
        self.edgeCount = edgeCount
        self.feed = feed
    }

    /// Notes that one of its edges was taken back; returns whether that was the last.
    mutating func removeEdge() -> Bool {
        edgeCount -= 1
        isBroken = true
        return edgeCount == 0
    }
}

/// An input that is added together with the last of its edges, in one step: the operation may be started at any moment.
struct NewDependencyInput {
    /// Its other edges, which were added before.
    var earlierEdges: [DependencyEdge] = []
    let feed: @Sendable (ManagedOperation) -> Void
}

extension ManagedOperation.Core {
    /// Adds what is called just before the body, in the order of adding.
    mutating func add(_ input: NewDependencyInput, lastEdge: DependencyEdge?) {
        let extras = need()
        // The edges name the input by this number. No other input of the operation has the same number.
        let number = UInt32(truncatingIfNeeded: extras.inputs.lastID + 1)
        for edge in input.earlierEdges { edge.inputNumber = number }
        lastEdge?.inputNumber = number
        let edgeCount = input.earlierEdges.count + (lastEdge == nil ? 0 : 1)
        extras.inputs.append(DependencyInput(edgeCount: edgeCount, feed: input.feed), id: UInt64(number))
    }
}

extension RareOperationState {
    /// Takes the inputs back to which edges led that were removed; what it returns is let go of outside the lock.
    func removeInputs(of links: [DependencyLinks.Upstream]) -> [DependencyInput] {
        var removed: [DependencyInput] = []
        for number in links.map({ UInt64($0.edge.inputNumber) }) where number != 0 {
            let isLast = inputs.update(number) { $0.removeEdge() }
            if isLast == true, let input = inputs.remove(number) { removed.append(input) }
        }
        return removed
    }
}

extension ManagedOperation {
    /// Waits for several operations, for all or none, and is fed when they ended.
    final func connect(
        to sources: [(upstream: Operation, judge: DependencyEdge.Judge)],
        feeding feed: @escaping @Sendable (ManagedOperation) -> Void
    ) throws(DependencyError) {
        let feed = feeding(feed)
        guard let last = sources.last else { return try addInput(feed) }
        var added: [DependencyEdge] = []
        do throws(DependencyError) {
            for source in sources.dropLast() { added.append(try connect(to: source.upstream, judge: source.judge)) }
            let input = NewDependencyInput(earlierEdges: added, feed: feed)
            try connect(to: last.upstream, judge: last.judge, input: input)
        } catch {
            for (edge, source) in zip(added, sources) { remove(edge, to: source.upstream) }
            throw error
        }
    }

    /// Adds an input that comes from no dependency at all.
    private func addInput(_ feed: @escaping @Sendable (ManagedOperation) -> Void) throws(DependencyError) {
        let isTooLate = core.withLock { core in
            guard core.machine.acceptsDependencies else { return core.machine.ending == nil || core.machine.isStarted }
            core.add(NewDependencyInput(feed: feed), lastEdge: nil)
            return false
        }
        if isTooLate { throw .alreadyStarted(displayName, dependency: "inputs") }
    }
}

/// Holds the result of one dependency until the operation that asked for it begins.
final class InputSlot<Input: Sendable>: Sendable {
    private let value = Locked<Input?>(nil)

    func put(_ new: Input) {
        var new: Input? = new
        value.withLock { swap(&$0, &new) }
    }

    func take() -> Input? { value.withLock { exchange(&$0, with: nil) } }

    /// Takes the result of the upstream operation, or says what becomes of the downstream one without it.
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
