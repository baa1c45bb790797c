// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch

/// A body whose wait is over, until there is a slot for it.
struct ReturningBody: Sendable {
    /// Who goes on.
    enum Turn: Sendable {
        /// The thread that waited.
        case thread(DispatchSemaphore)
        /// Nobody's thread: what is called goes on.
        case call(@Sendable () -> Void)
    }

    let key: QueueMachine.Key
    let turn: Turn

    var hasThread: Bool {
        if case .thread = turn { true } else { false }
    }

    /// There is a slot, or the operation ended.
    func grant() {
        switch turn {
        case .thread(let semaphore): semaphore.signal()
        // It may run what is the user's, and end its operation, whereupon another one goes on.
        case .call(let goOn): DispatchQueue.global().async(execute: goOn)
        }
    }
}

/// Those, in the order in which they came.
struct ReturningLine {
    private var bodies = Fifo<ReturningBody>()
    /// How many of them are threads.
    private(set) var threads = 0

    var isEmpty: Bool { bodies.isEmpty }
    var count: Int { bodies.count }
    var first: ReturningBody? { bodies.first }

    mutating func append(_ body: ReturningBody) {
        if body.hasThread { threads += 1 }
        bodies.append(body)
    }

    mutating func removeFirst() {
        if bodies.popFirst()?.hasThread == true { threads -= 1 }
    }

    /// Takes out the threads of that entry.
    mutating func removeThreads(of key: QueueMachine.Key) -> [ReturningBody] {
        let removed = bodies.removeAll {
            $0.hasThread && $0.key.slot == key.slot && $0.key.generation == key.generation
        }
        threads -= removed.count
        return removed
    }
}
