// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

extension GroupOperation where ResultType == Never, ErrorType == Never {
    /// Creates a group that runs an operation for each element, with at most `width` operations at a time, and collects
    /// the results in the order of the elements.
    ///
    /// ```swift
    /// let squares = GroupOperation.map(1...100_000, width: 8) { number in
    ///     ClosureOperation { number * number }
    /// }
    /// let sum = try await squares.run().reduce(0, +)
    /// ```
    ///
    /// The group creates an operation only while fewer than `width` of the operations that it created are unfinished.
    ///
    /// If one operation fails or is canceled, the group fails. The error of the group then contains the zero-based
    /// index of the element. To protect secrets, the error shows only simple elements, such as numbers, strings of
    /// plain words, and URLs without their queries. A string or URL is cut off after 80 characters. For an element of a
    /// struct or class, the error contains the name of the type.
    ///
    /// - Parameters:
    ///   - elements: The elements, over which the group iterates once.
    ///   - width: The maximum number of operations that run at the same time. A value below 1 is treated as 1.
    ///   - queue: The queue on which the operations run. The default is `nil`, which uses the ``QueueManager`` that
    ///     holds the group. If no ``QueueManager`` holds the group, the operations run on a shared queue.
    ///   - make: The closure that creates the operation for an element. The closure is called on any thread, but never
    ///     on several threads at the same time. The closure is not called after the group has failed or been canceled.
    public static func map<Elements: Sequence & Sendable, Value, Failure>(
        _ elements: Elements, width: Int, on queue: QueueManager? = nil,
        _ make: @escaping @Sendable (Elements.Element) -> TypedOperation<Value, Failure>
    ) -> GroupOperation<[Value], GroupFailure> {
        let expected = Double(elements.underestimatedCount)
        var iterator = elements.makeIterator()
        let group = map(GroupMap({ iterator.next() }, isOver: { true }, make), nil, width, queue)
        group.expect(totalWeight: expected)
        return group
    }

    /// Creates a group that runs an operation for each element of an asynchronous sequence, with at most `width`
    /// operations at a time, and collects the results in the order of the elements.
    ///
    /// The first operations run while the group still reads the sequence.
    ///
    /// Use this method if the elements arrive one after another. In the following sample, the group reads the next page
    /// of a list while operations for the previous page still run:
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
    /// let sizes = GroupOperation.map(names, width: 4) { name in
    ///     TaskOperation { name.count }
    /// }
    /// print(try await sizes.run())
    /// ```
    ///
    /// ### Reading ahead
    ///
    /// When the group starts, one task begins to read the sequence. This task inherits the task-local values and the
    /// priority of the task that runs the group. The task reads at most `width` elements ahead, and never more than 64.
    /// The task does not count toward the width of the group or its queue. While the group is suspended, the task
    /// requests no further element.
    ///
    /// ### Errors and cancellation
    ///
    /// The group ends when the sequence has ended and each operation has ended. If the sequence throws an error, the
    /// group fails immediately and cancels its operations. ``GroupFailure/sourceError`` contains the error. If the
    /// sequence throws an ``OperationFailure`` that contains an error, `sourceError` is the contained error.
    ///
    /// A sequence cannot cancel the group. If the sequence throws a `CancellationError` or an
    /// ``OperationFailure/cancelled(_:)``, the group fails, and `sourceError` is the thrown error.
    ///
    /// When the group is canceled or fails, the task is canceled immediately. The group does not wait for the task, so
    /// a sequence that ignores the cancellation does not delay the end of the group.
    ///
    /// The group does not know the number of elements. Until the sequence ends, the group's progress therefore expects
    /// one more operation than the group has created. To set the expected number, call ``expect(totalWeight:)``.
    ///
    /// - Parameters:
    ///   - elements: The elements, over which the group iterates once.
    ///   - width: The maximum number of operations that run at the same time. A value below 1 is treated as 1.
    ///   - queue: The queue on which the operations run. The default is `nil`, which uses the ``QueueManager`` that
    ///     holds the group. If no ``QueueManager`` holds the group, the operations run on a shared queue.
    ///   - make: The closure that creates the operation for an element. The closure is called on any thread, but never
    ///     on several threads at the same time. The closure is not called after the group has failed or been canceled.
    public static func map<Elements: AsyncSequence & Sendable, Value, Failure>(
        _ elements: Elements, width: Int, on queue: QueueManager? = nil,
        _ make: @escaping @Sendable (Elements.Element) -> TypedOperation<Value, Failure>
    ) -> GroupOperation<[Value], GroupFailure> where Elements.Element: Sendable {
        let reader = ElementReader(elements, limit: width)
        return map(GroupMap({ reader.next() }, isOver: { reader.isOver }, make), reader, width, queue)
    }

    private static func map<Element, Value, Failure>(
        _ source: GroupMap<Element, Value, Failure>, _ reader: (any SourceReader)?, _ width: Int, _ queue: QueueManager?
    ) -> GroupOperation<[Value], GroupFailure> {
        let machine = GroupMachine(policy: .failFast, width: width, hasSource: true)
        let engine = GroupEngine(machine, queue: queue, source: source, reader: reader)
        return GroupOperation<[Value], GroupFailure>(engine) { _ in source.takeResults() }
    }
}

/// Makes the children of a map, and keeps their results.
final class GroupMap<Element, Value: Sendable, Failure: Error>: GroupSource {
    typealias Make = @Sendable (Element) -> TypedOperation<Value, Failure>

    /// The element of a child that has not ended, or the result of a child that has ended.
    private enum Entry {
        case element(Element)
        case ended(Value?)
    }

    // Sendable: only `next`, `isOver` and `release` use this property, and the group never calls them at the same time.
    private nonisolated(unsafe) var rest: (next: () -> Element?, isOver: () -> Bool, make: Make)?
    private let lock = Locked(())
    // Sendable: the entries are used only under the lock. The lock does not contain them, because it would then be
    // generic, and each use would look up the descriptions of its types.
    private nonisolated(unsafe) var entries: [Entry] = []

    /// Creates a map of the elements that `next` returns one after another.
    ///
    /// The closures may be user code, so they are called without holding a lock, and never by two threads at the same
    /// time. If `next` returns `nil`, `isOver` returns whether there will be no further element.
    init(_ next: @escaping () -> Element?, isOver: @escaping () -> Bool, _ make: @escaping Make) {
        rest = (next, isOver, make)
    }

    var isOver: Bool { rest == nil }

    func next() -> (child: ManagedOperation, tag: Int32)? {
        guard let make = rest?.make else { return nil }
        // The iterator may be user code, so the lock is not held.
        guard let element = rest?.next() else {
            // The iterator may hold all elements.
            if rest?.isOver() == true { release() }
            return nil
        }
        let tag = lock.withLock { _ in
            entries.append(.element(element))
            return Int32(truncatingIfNeeded: entries.count - 1)
        }
        return (make(element), tag)
    }

    func take(_ child: ManagedOperation, tag: Int32) {
        var entry = Entry.ended((child as? TypedOperation<Value, Failure>)?.outcomeInGroup?.result)
        lock.withLock { _ in swap(&entry, &entries[Int(tag)]) }
        // The element may be an object of the user, so it is released without holding the lock.
        extendLifetime(entry)
    }

    func describe(tag: Int32) -> String? {
        // The description of the element may be user code, so it is requested without holding the lock.
        guard case .element(let element) = lock.withLock({ _ in entries[Int(tag)] }) else { return "element \(tag)" }
        return "element \(tag)" + (elementName(element).map { " (\($0))" } ?? "")
    }

    func release() { extendLifetime(exchange(&rest, with: nil)) }

    func takeResults() -> [Value] {
        lock.withLock { _ in exchange(&entries, with: []) }.compactMap { entry in
            if case .ended(let value) = entry { value } else { nil }
        }
    }
}

/// A reader of the elements of a group, which uses its own task.
protocol SourceReader: Sendable {
    /// Creates the task when the group begins, with the context of the caller.
    ///
    /// If the task waits for an operation, the group waits for that operation, too. The reader calls `update` with the
    /// error of the sequence, and with `nil` if a further element was read or there will be none.
    func begin(for group: ManagedOperation, _ update: @escaping @Sendable ((any Error)?) -> Void)

    /// Stops requesting elements from the sequence, or starts again.
    func setSuspended(_ isSuspended: Bool)

    /// Cancels the task without waiting for it, because the group needs no further element.
    func stop()
}

/// Reads an asynchronous sequence in one task, a limited number of elements ahead.
///
/// The task keeps only the reader and the sequence alive. So it keeps no group alive if the sequence never gives its
/// next element and ignores the cancellation.
final class ElementReader<Elements: AsyncSequence & Sendable>: SourceReader where Elements.Element: Sendable {
    private struct State {
        /// The sequence, until the task begins.
        var elements: Elements?
        var task: Task<Void, Never>?
        /// The number of the task in `BodyTasks`, while the group waits for it.
        var body: (number: Int, group: ManagedOperation)?
        /// Elements that were read, and for which the group has made no operation yet.
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

    func begin(for group: ManagedOperation, _ update: @escaping @Sendable ((any Error)?) -> Void) {
        guard let elements = state.withLock({ exchange(&$0.elements, with: nil) }) else { return }
        let task = Task { [weak group] in
            recordBody(of: group)
            await read(elements, update)
        }
        let isLate = state.withLock { state in
            if !state.isStopped { state.task = task }
            return state.isStopped
        }
        if isLate { task.cancel() }
    }

    /// Notes that the group does not end before the calling task, unless the group stops the reader.
    private func recordBody(of group: ManagedOperation?) {
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

    private func read(_ elements: Elements, _ update: @Sendable ((any Error)?) -> Void) async {
        var iterator = elements.makeAsyncIterator()
        do {
            while await hasRoom(), let element = try await iterator.next(isolation: nil) {
                state.withLock { state in
                    if !state.isStopped { state.read.append(element) }
                }
                update(nil)
            }
        } catch {
            update(error)
        }
        forgetBody()
        state.withLock { $0.hasEnded = true }
        update(nil)
    }

    /// Waits until one more element may be read, and returns `false` if none is needed.
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
        // The cancellation may run user code, so it happens without holding the lock.
        task?.cancel()
        wait?.end()
        extendLifetime((elements, read))
    }

    // The elements as the source of the group receives them.

    var isOver: Bool { state.withLock { $0.hasEnded && $0.read.isEmpty } }

    func next() -> Elements.Element? {
        let (element, wait) = state.withLock { ($0.read.popFirst(), $0.takeWait(limit)) }
        wait?.end()
        return element
    }
}

/// Keys and tokens are longer than words, and have no gaps.
private let longestWord = 24
private let longestText = 80

/// Returns the text with which an error or a log may show an element of a map.
///
/// An element may contain a password. So the text only shows numbers, short plain texts, cases of enumerations, and
/// addresses without their query. The text never shows an element in which a value follows a name. For other elements,
/// the text shows the name of the type. A short password that is the whole text looks like any other word, and is
/// shown.
private func elementName(_ element: Any) -> String? {
    switch element {
    case let url as URL: return name(of: url)
    case let string as any StringProtocol: return name(of: String(string))
    case let value as any Numeric: return String(describing: value)
    case let value as Bool: return String(value)
    case let value as UUID: return value.uuidString
    default:
        let mirror = Mirror(reflecting: element)
        let isPlainCase = mirror.displayStyle == .enum && mirror.children.isEmpty
        return isPlainCase ? name(of: String(describing: element)) : String(describing: type(of: element))
    }
}

/// Returns the address without user, password, query and fragment.
private func name(of url: URL) -> String? {
    guard url.isFileURL || url.host != nil, var parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
    else {
        return nil
    }
    (parts.user, parts.password, parts.query, parts.fragment) = (nil, nil, nil, nil)
    guard let text = parts.string, isPlain(text, signs: "-_./:%+,") else { return url.host.map { "…://\($0)/…" } }
    return String(text.prefix(longestText))
}

private func name(of text: String) -> String? {
    if text.contains("://") { return URL(string: text).flatMap(name(of:)) }
    return isPlain(text, signs: " -_./,+()#") ? String(text.prefix(longestText)) : nil
}

/// Returns whether a string consists only of words and of signs that separate the parts of a name.
private func isPlain(_ text: String, signs: String) -> Bool {
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

/// A source that makes the children of a group when there is room for them.
///
/// The methods are called without holding a lock. Each call of `next` and the call of `release` follow the end of the
/// previous call of `next`.
protocol GroupSource: Sendable {
    /// Makes the next child. Returns `nil` if there is none until a child has ended or the reader of the elements has
    /// news, or if there will be no further child.
    func next() -> (child: ManagedOperation, tag: Int32)?

    /// Whether there will be no further child, after `next` has returned `nil`.
    var isOver: Bool { get }

    /// Notes that a child from this source has ended.
    func take(_ child: ManagedOperation, tag: Int32)

    /// Describes the element of a child that has not ended, in a few words.
    func describe(tag: Int32) -> String?

    /// Releases everything, because the group is over.
    func release()
}
