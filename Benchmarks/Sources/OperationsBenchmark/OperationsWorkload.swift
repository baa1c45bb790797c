// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import OperationCore

/// The smallest asynchronous operation of OperationKit.
private final class EmptyOperation: AsyncOperation<Int, Never>, @unchecked Sendable {
    // Sendable: the class has no state.

    override func main() {}
}

private final class TextOperation: AsyncOperation<String, Never>, @unchecked Sendable {
    override func main() {}
}

@main
enum OperationsBenchmark {
    static func main() {
        BenchmarkCommand("operations", workload: operationsWorkload).main()
    }
}

/// Returns the time to create, start, finish, deliver and release one operation.
private func operationsWorkload(_ scale: Scale) -> [Figure] {
    let queue = DispatchQueue(label: "callbacks")
    let bare = compare(scale) { count in
        for number in 0..<count {
            let operation = EmptyOperation()
            operation.start()
            operation.finish(withResult: number)
        }
    } peer: { count in
        for _ in 0..<count {
            let operation = MinimalOperation()
            operation.start()
            operation.finish()
        }
    }
    let handled = compare(scale) { count in
        inBatches(of: count, on: queue) { number in
            let operation = EmptyOperation()
            operation.callbackQueue = queue
            operation.successHandler = { sink($0) }
            operation.start()
            operation.finish(withResult: number)
        }
    } peer: { count in
        inBatches(of: count, on: queue) { number in
            let operation = MinimalOperation()
            operation.start()
            operation.finish()
            queue.async { sink(number) }
        }
    }
    let count = scale.count
    let ours = footprint(count) { EmptyOperation() as Operation }
    let foundation = footprint(count) { Operation() }
    let text = "a result that does not fit into a word"
    let runText = allocations(count) {
        let operation = TextOperation()
        operation.start()
        operation.finish(withResult: text)
    }
    let run = allocations(count) {
        let operation = EmptyOperation()
        operation.start()
        operation.finish(withResult: 1)
    }
    let runFoundation = allocations(count) {
        let operation = MinimalOperation()
        operation.start()
        operation.finish()
    }
    return [
        .ratio("create, start, finish; no handler", unit: "ns", bare, target: .atMost(1.5)),
        .ratio("create, start, finish, deliver to a handler", unit: "ns", handled, target: .atMost(1.5)),
        .plain("bytes beyond Foundation's Operation", unit: "B", ours.bytes - foundation.bytes, target: .atMost(300)),
        .plain("heap blocks beyond Foundation's, made", unit: "", ours.blocks - foundation.blocks, target: .atMost(2)),
        .plain("heap blocks beyond the peer's, whole life, Int", unit: "", run - runFoundation, target: .atMost(2)),
        .plain(
            "heap blocks beyond the peer's, whole life, String", unit: "", runText - runFoundation, target: .atMost(2)),
    ]
}

/// Creates a batch of operations while the queue is suspended, and then lets the queue deliver the batch.
///
/// The measured time then contains the work of both sides, and does not depend on how often one thread wakes the other.
private func inBatches(of count: Int, on queue: DispatchQueue, _ make: (Int) -> Void) {
    var made = 0
    while made < count {
        queue.suspend()
        for number in made..<min(made + 256, count) { make(number) }
        made += 256
        queue.resume()
        queue.sync {}
    }
}

@inline(never)
private func sink(_ value: Int) {}
