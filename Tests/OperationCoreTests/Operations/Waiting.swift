// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit

extension DispatchQueue {
    /// Waits until this serial queue has run everything that was enqueued so far.
    func drain() async {
        await withCheckedContinuation { continuation in
            async { continuation.resume() }
        }
    }
}

extension EventRecorder {
    /// Returns the events when the serial queue has run everything that was enqueued so far.
    func events(after queue: DispatchQueue) async -> [Event] {
        await queue.drain()
        return events
    }
}

/// A serial queue that knows whether the caller is on it.
struct MarkedQueue: Sendable {
    let queue: DispatchQueue
    private let key = DispatchSpecificKey<Void>()

    init(_ queue: DispatchQueue = DispatchQueue(label: "marked")) {
        self.queue = queue
        queue.setSpecific(key: key, value: ())
    }

    var isCurrent: Bool { DispatchQueue.getSpecific(key: key) != nil }
}

/// Opens a gate when it is freed.
final class Witness: Sendable {
    let gone: Gate

    init(_ gone: Gate = Gate()) { self.gone = gone }

    deinit { gone.open() }
}

/// Calls a closure when it is freed.
final class LastWord: Sendable {
    private let say: @Sendable () -> Void

    init(_ say: @escaping @Sendable () -> Void) { self.say = say }

    deinit { say() }
}

extension OperationOutcome where ResultType: Sendable {
    /// The outcome as a short word.
    var word: String {
        switch self {
        case .success(let result): "success \(result)"
        case .failure(let error): "failure \(error)"
        case .cancelled(let cause): "cancelled \(cause.code)"
        }
    }
}

extension Gate {
    /// Whether the gate is opened within a time.
    ///
    /// Only a failing test waits this long.
    @available(*, noasync)
    func waits(upTo limit: DispatchTimeInterval) -> Bool {
        if isOpen { return true }
        let semaphore = DispatchSemaphore(value: 0)
        Thread { [self] in
            wait()
            semaphore.signal()
        }.start()
        return semaphore.wait(timeout: .now() + limit) == .success
    }
}
