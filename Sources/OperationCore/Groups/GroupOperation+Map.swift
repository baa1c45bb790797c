// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension GroupOperation where ResultType == Never, ErrorType == Never {
    /// A group that makes an operation of each element, as there is room for it, and gives their results in order.
    ///
    /// ```swift
    /// let squares = GroupOperation.map(1...100_000, width: 8) { number in ClosureOperation { number * number } }
    /// let sum = try await squares.run().reduce(0, +)
    /// ```
    ///
    /// Hardly more operations than `width` exist at a time. The first that gives no result fails the group.
    ///
    /// - Parameters:
    ///   - elements: What to go through, once, in order.
    ///   - width: How many operations may run at once; below one, it is one.
    ///   - queue: Where they run; nil for the queue that holds the group.
    ///   - make: Makes an operation. Called on any thread, never twice at once, and not after a failure or cancellation.
    public static func map<Elements: Sequence & Sendable, Value, Failure>(
        _ elements: Elements, width: Int, on queue: QueueManager? = nil,
        _ make: @escaping @Sendable (Elements.Element) -> TypedOperation<Value, Failure>
    ) -> GroupOperation<[Value], GroupFailure> {
        let expected = Double(elements.underestimatedCount)
        let source = GroupMap(elements, make)
        let machine = GroupMachine(policy: .failFast, width: width, hasSource: true)
        let group = GroupOperation<[Value], GroupFailure>(GroupEngine(machine, queue: queue, source: source)) { _ in
            source.takeResults()
        }
        group.expect(totalWeight: expected)
        return group
    }
}

/// Makes the children of a map, and keeps their results.
final class GroupMap<Elements: Sequence & Sendable, Value: Sendable, Failure: Error>: GroupSource {
    private struct State {
        // Only used by who asks for the next child, never by two at once, but behind the lock all the same.
        var rest: Elements.Iterator?
        var make: (@Sendable (Elements.Element) -> TypedOperation<Value, Failure>)?
        var results: [Value?] = []
    }

    private let state: Locked<State>

    init(_ elements: Elements, _ make: @escaping @Sendable (Elements.Element) -> TypedOperation<Value, Failure>) {
        state = Locked(State(rest: elements.makeIterator(), make: make))
    }

    func next() -> GroupPull {
        // The iterator is the user's: it is taken out, and used outside the lock.
        let taken = state.withLock { state in
            Unchecked((exchange(&state.rest, with: nil), state.make, state.results.count))
        }
        let (iterator, make, index) = taken.value
        guard var rest = iterator, let make, let element = rest.next() else { return .nothingMore }
        let left = Unchecked(rest)
        state.withLock { state in
            state.rest = left.value
            state.results.append(nil)
        }
        return .child(make(element), tag: Int32(truncatingIfNeeded: index))
    }

    func take(_ child: ManagedOperation, tag: Int32) {
        guard let result = (child as? TypedOperation<Value, Failure>)?.outcomeInGroup?.result else { return }
        state.withLock { $0.results[Int(tag)] = result }
    }

    func letGo() {
        let left = state.withLock { state in
            Unchecked((exchange(&state.rest, with: nil), exchange(&state.make, with: nil)))
        }
        withExtendedLifetime(left) {}
    }

    func takeResults() -> [Value] { state.withLock { exchange(&$0.results, with: []) }.compactMap { $0 } }
}
