// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

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

/// Reads the elements of a group in a task.
protocol SourceReader: Sendable {
    /// The group begins: creates the task, which has the context of the calling one.
    ///
    /// What the task waits for, the group waits for, too.
    func begin(for group: ManagedOperation, _ news: @escaping @Sendable (SourceNews) -> Void)

    /// Asks the sequence for no further element, or does so again.
    func setSuspended(_ isSuspended: Bool)

    /// The group needs no further element: cancels the task, and does not wait for it.
    func stop()
}

/// What the reader of a group's elements tells the group.
enum SourceNews {
    /// There is an element, or there will be none.
    case more
    case failed(any Error)
}

/// Reads an asynchronous sequence in one task, a limited number of elements ahead.
///
/// The task keeps only the reader and the sequence alive. So a sequence that never gives its next element, and ignores the
/// cancellation, keeps no group.
final class ElementReader<Elements: AsyncSequence & Sendable>: SourceReader where Elements.Element: Sendable {
    private struct State {
        /// The sequence, until the task begins.
        var elements: Elements?
        var task: Task<Void, Never>?
        /// The number of the task in `BodyTasks`, while the group waits for it.
        var body: (number: Int, group: ManagedOperation)?
        /// Elements that were read, and of which the group made nothing yet.
        var read = Fifo<Elements.Element>()
        /// The wait of the task for room.
        var wait: TaskWait?
        var hasEnded = false
        var isSuspended = false
        var isStopped = false

        func mayRead(_ limit: Int) -> Bool { !isSuspended && read.count < limit }

        /// The wait of the task, if it is over.
        mutating func takeWait(_ limit: Int) -> TaskWait? { mayRead(limit) ? exchange(&wait, with: nil) : nil }
    }

    private let state: Locked<State>
    private let limit: Int

    init(_ elements: Elements, limit: Int) {
        state = Locked(State(elements: elements))
        self.limit = min(max(limit, 1), 64)
    }

    func begin(for group: ManagedOperation, _ news: @escaping @Sendable (SourceNews) -> Void) {
        guard let elements = state.withLock({ exchange(&$0.elements, with: nil) }) else { return }
        let task = Task { [weak group] in
            noteBody(of: group)
            await read(elements, news)
        }
        let isLate = state.withLock { state in
            if !state.isStopped { state.task = task }
            return state.isStopped
        }
        if isLate { task.cancel() }
    }

    /// Notes that the group does not end before the calling task, unless the group stops the reader.
    private func noteBody(of group: ManagedOperation?) {
        guard let group else { return }
        let number = BodyTasks.begin(group)
        let isLate = state.withLock { state in
            if !state.isStopped { state.body = (number, group) }
            return state.isStopped
        }
        if isLate { BodyTasks.end(number, of: group) }
    }

    private func forgetBody() {
        guard let body = state.withLock({ exchange(&$0.body, with: nil) }) else { return }
        BodyTasks.end(body.number, of: body.group)
    }

    private func read(_ elements: Elements, _ news: @Sendable (SourceNews) -> Void) async {
        var iterator = elements.makeAsyncIterator()
        do {
            while await hasRoom(), let element = try await iterator.next(isolation: nil) {
                state.withLock { state in
                    if !state.isStopped { state.read.append(element) }
                }
                news(.more)
            }
        } catch {
            news(.failed(error))
        }
        forgetBody()
        state.withLock { $0.hasEnded = true }
        news(.more)
    }

    /// Waits until one more element may be read; false if none is needed.
    private func hasRoom() async -> Bool {
        while true {
            let (isStopped, wait) = state.withLock { state -> (Bool, TaskWait?) in
                if state.isStopped || state.mayRead(limit) { return (state.isStopped, nil) }
                let wait = TaskWait()
                state.wait = wait
                return (false, wait)
            }
            guard let wait else { return !isStopped }
            await wait.passage()
        }
    }

    func setSuspended(_ isSuspended: Bool) {
        let wait = state.withLock { state in
            state.isSuspended = isSuspended
            return state.takeWait(limit)
        }
        wait?.end()
    }

    func stop() {
        let (elements, task, wait, read) = state.withLock { state in
            state.isStopped = true
            return (
                exchange(&state.elements, with: nil), exchange(&state.task, with: nil),
                exchange(&state.wait, with: nil), exchange(&state.read, with: Fifo())
            )
        }
        forgetBody()
        // What ends with the cancellation may be the user's.
        task?.cancel()
        wait?.end()
        withExtendedLifetime((elements, read)) {}
    }
}

// What the source of the group takes from it.
extension ElementReader: ElementFeed {
    var isOver: Bool { state.withLock { $0.hasEnded && $0.read.isEmpty } }

    func next() -> Elements.Element? {
        let (element, wait) = state.withLock { ($0.read.popFirst(), $0.takeWait(limit)) }
        wait?.end()
        return element
    }
}

/// What an error or a log may show of an element of a map.
///
/// An element may hold a password. So only numbers, short plain texts, cases of enumerations and addresses without their query
/// are shown, and no text in which a value follows a name. For other elements, the name of the type is shown. A short password
/// that is a text by itself looks like any other word, and is shown.
struct ElementName {
    private static let longestText = 80
    /// Keys and tokens are longer than words are, and have no gaps.
    private static let longestWord = 24

    let text: String?

    init(_ element: Any) {
        switch element {
        case let url as URL: text = Self.name(of: url)
        case let string as any StringProtocol: text = Self.name(of: String(string))
        case let value as any Numeric: text = String(describing: value)
        case let value as Bool: text = String(value)
        case let value as UUID: text = value.uuidString
        default:
            let mirror = Mirror(reflecting: element)
            let isPlainCase = mirror.displayStyle == .enum && mirror.children.isEmpty
            text = isPlainCase ? Self.name(of: String(describing: element)) : String(describing: type(of: element))
        }
    }

    /// The address without user, password, query and fragment.
    private static func name(of url: URL) -> String? {
        guard url.isFileURL || url.host != nil, var parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
        else {
            return nil
        }
        (parts.user, parts.password, parts.query, parts.fragment) = (nil, nil, nil, nil)
        guard let text = parts.string, isPlain(text, signs: "-_./:%+,") else { return url.host.map { "…://\($0)/…" } }
        return String(text.prefix(longestText))
    }

    private static func name(of text: String) -> String? {
        if text.contains("://") { return URL(string: text).flatMap(name(of:)) }
        return isPlain(text, signs: " -_./,+()#") ? String(text.prefix(longestText)) : nil
    }

    /// Whether a text has only words, and signs that stand between the parts of a name.
    private static func isPlain(_ text: String, signs: String) -> Bool {
        let lowercased = text.lowercased()
        guard !lowercased.contains("bearer "), !lowercased.contains("basic ") else { return false }
        var length = 0
        for character in text {
            if character.isLetter || character.isNumber {
                length += 1
                guard length <= longestWord else { return false }
            } else {
                guard signs.contains(character) else { return false }
                length = 0
            }
        }
        return true
    }
}

/// What makes children of a group as there is room for them.
///
/// Called outside every lock; `next` never by two threads at once.
protocol GroupSource: Sendable {
    func next() -> GroupPull

    /// A child that it made has ended.
    func take(_ child: ManagedOperation, tag: Int32)

    /// Describes the element of which a child that has not been taken was made, in a few words.
    func describe(tag: Int32) -> String?

    /// The group is over: what it holds for the rest is not needed.
    func letGo()
}

/// What a source gives.
enum GroupPull {
    case child(ManagedOperation, tag: Int32)
    /// Nothing before a child has ended, or before the reader of the elements has news.
    case nothingNow
    case nothingMore
}

/// The elements of which a source makes children, one after the other.
///
/// It is the user's, so it is called outside every lock, and never by two threads at the same time.
protocol ElementFeed<Element>: SendableMetatype {
    associatedtype Element

    /// The next element; nil if there is none, or none yet.
    mutating func next() -> Element?

    /// Whether there will be no further element. It is asked after `next` gave none.
    var isOver: Bool { get }
}

/// The elements of a sequence.
struct SequenceFeed<Elements: Sequence & Sendable>: ElementFeed {
    private var rest: Elements.Iterator

    init(_ elements: Elements) { rest = elements.makeIterator() }

    var isOver: Bool { true }

    mutating func next() -> Elements.Element? { rest.next() }
}
