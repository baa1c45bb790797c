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
    /// Hardly more operations than `width` exist at a time. The first that gives no result fails the group. Its error then names
    /// the index of the element, counted from zero. Numbers, short plain texts and addresses without a query are shown, too, in at
    /// most 80 characters. Of other elements the name of the type is shown, because they may hold secrets.
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
        let group = map(GroupMap(SequenceFeed(elements), make), nil, width, queue)
        group.expect(totalWeight: expected)
        return group
    }

    /// A group that makes an operation of each element of an asynchronous sequence, while it reads the sequence, and
    /// gives their results in order.
    ///
    /// Use it if you learn of the elements one after the other, for example from a list that a server sends in pages. The
    /// group reads the next page while the operations of the last page still run:
    ///
    /// ```swift
    /// struct Names: AsyncSequence, Sendable {
    ///     let page: @Sendable (Int) async throws -> [String]
    ///
    ///     struct AsyncIterator: AsyncIteratorProtocol {
    ///         let page: @Sendable (Int) async throws -> [String]
    ///         var number = 0
    ///         var names: ArraySlice<String> = []
    ///
    ///         mutating func next() async throws -> String? {
    ///             if names.isEmpty {
    ///                 number += 1
    ///                 names = try await page(number)[...]
    ///             }
    ///             return names.popFirst()
    ///         }
    ///     }
    ///
    ///     func makeAsyncIterator() -> AsyncIterator { AsyncIterator(page: page) }
    /// }
    ///
    /// let names = Names { number in number < 4 ? ["a\(number)", "b\(number)"] : [] }
    /// let sizes = GroupOperation.map(names, width: 4) { name in TaskOperation { name.count } }
    /// print(try await sizes.run())
    /// ```
    ///
    /// ### How far it reads
    ///
    /// Nothing is read before the group starts. Then one task reads the sequence. It has the task-local values and the
    /// priority of the task that runs the group. It reads at most `width` elements (and never more than 64) for which no
    /// operation was made yet, and waits when it has read that many. While the task waits for the next element, it takes up
    /// no slot of a queue. While the group is suspended, the task asks for no further element.
    ///
    /// ### How it ends
    ///
    /// The group ends when the sequence has ended and each operation has ended. An error of the sequence fails the group
    /// immediately, as the first failure of an operation does: the other operations are canceled, and
    /// ``GroupFailure/sourceError`` is the error. If the sequence throws an ``OperationFailure``, it is the error in it.
    ///
    /// A sequence cannot cancel the group. A `CancellationError` that it throws fails the group as any other error does, and so
    /// does an ``OperationFailure/cancelled(_:)``, which is then the `sourceError` itself.
    ///
    /// When the group is canceled or fails, the task is canceled immediately. The group does not wait for the task, so it
    /// also ends if the sequence ignores the cancellation.
    ///
    /// The group does not know how many elements there will be. Until the sequence ends, its progress counts those for which there
    /// is an operation and one more, unless you say how many will come with ``expect(totalWeight:)``.
    ///
    /// - Parameters:
    ///   - elements: What to go through, once, in order.
    ///   - width: How many operations may run at once; below one, it is one.
    ///   - queue: Where they run; nil for the queue that holds the group.
    ///   - make: Makes an operation. Called on any thread, never twice at once, and not after a failure or cancellation.
    public static func map<Elements: AsyncSequence & Sendable, Value, Failure>(
        _ elements: Elements, width: Int, on queue: QueueManager? = nil,
        _ make: @escaping @Sendable (Elements.Element) -> TypedOperation<Value, Failure>
    ) -> GroupOperation<[Value], GroupFailure> where Elements.Element: Sendable {
        let reader = ElementReader(elements, limit: width)
        return map(GroupMap(reader, make), reader, width, queue)
    }

    private static func map<Feed, Value, Failure>(
        _ source: GroupMap<Feed, Value, Failure>, _ reader: (any SourceReader)?, _ width: Int, _ queue: QueueManager?
    ) -> GroupOperation<[Value], GroupFailure> {
        let machine = GroupMachine(policy: .failFast, width: width, hasSource: true)
        let engine = GroupEngine(machine, queue: queue, source: source, reader: reader)
        return GroupOperation<[Value], GroupFailure>(engine) { _ in source.takeResults() }
    }
}

/// Makes the children of a map, and keeps their results.
final class GroupMap<Feed: ElementFeed, Value: Sendable, Failure: Error>: GroupSource {
    private struct State {
        // Only used by who asks for the next child, never by two at once, but behind the lock all the same.
        var rest: Feed?
        var make: (@Sendable (Feed.Element) -> TypedOperation<Value, Failure>)?
        var results: [Value?] = []
        /// The elements of the children that have not ended, by their tags.
        var elements: [Int32: Feed.Element] = [:]
    }

    private let state: Locked<State>

    init(_ feed: Feed, _ make: @escaping @Sendable (Feed.Element) -> TypedOperation<Value, Failure>) {
        state = Locked(State(rest: feed, make: make))
    }

    func next() -> GroupPull {
        // The iterator is the user's: it is taken out, and used outside the lock.
        let taken = state.withLock { state in
            Unchecked((exchange(&state.rest, with: nil), state.make, state.results.count))
        }
        let (feed, make, index) = taken.value
        guard var rest = feed, let make else { return .nothingMore }
        guard let element = rest.next() else {
            if rest.isOver { return .nothingMore }
            let left = Unchecked(rest)
            state.withLock { $0.rest = left.value }
            return .nothingNow
        }
        let tag = Int32(truncatingIfNeeded: index)
        let left = Unchecked((rest, element))
        state.withLock { state in
            state.rest = left.value.0
            state.results.append(nil)
            state.elements[tag] = left.value.1
        }
        return .child(make(element), tag: tag)
    }

    func take(_ child: ManagedOperation, tag: Int32) {
        let result = (child as? TypedOperation<Value, Failure>)?.outcomeInGroup?.result
        let element = state.withLock { state in
            if let result { state.results[Int(tag)] = result }
            return Unchecked(state.elements.removeValue(forKey: tag))
        }
        withExtendedLifetime(element) {}
    }

    func describe(tag: Int32) -> String? {
        // How the element describes itself is the user's: it is asked outside the lock.
        let element = state.withLock { Unchecked($0.elements[tag]) }.value
        return "element \(tag)" + (element.flatMap { ElementName($0).text }.map { " (\($0))" } ?? "")
    }

    func letGo() {
        let left = state.withLock { state in
            Unchecked(
                (
                    exchange(&state.rest, with: nil), exchange(&state.make, with: nil),
                    exchange(&state.elements, with: [:])
                ))
        }
        withExtendedLifetime(left) {}
    }

    func takeResults() -> [Value] { state.withLock { exchange(&$0.results, with: []) }.compactMap { $0 } }
}
