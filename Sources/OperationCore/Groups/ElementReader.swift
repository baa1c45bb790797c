// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Reads the elements of a group in a task.
protocol SourceReader: Sendable {
    /// The group begins: creates the task, which has the context of the calling one.
    func begin(_ news: @escaping @Sendable (SourceNews) -> Void)

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

    func begin(_ news: @escaping @Sendable (SourceNews) -> Void) {
        guard let elements = state.withLock({ exchange(&$0.elements, with: nil) }) else { return }
        let task = Task { await read(elements, news) }
        let isLate = state.withLock { state in
            if !state.isStopped { state.task = task }
            return state.isStopped
        }
        if isLate { task.cancel() }
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
