// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// One who waits in a test until a count is reached.
///
/// Whoever counts keeps him until then. His task may be cancelled first: then he goes on, and takes himself out.
final class Waiter: Sendable {
    let count: Int
    private let answer = FirstAnswer<Void>()

    init(until count: Int) { self.count = count }

    func pass() { answer.give(()) }

    /// Waits for ``pass()``, or until the task is cancelled.
    func passage() async { await answer.valueUnlessCancelled(or: ()) }
}

extension [Waiter] {
    /// Takes out those who have waited for that.
    mutating func takeAll(at count: Int) -> [Waiter] {
        let passing = filter { $0.count <= count }
        if !passing.isEmpty { removeAll { $0.count <= count } }
        return passing
    }
}
