// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A `URLSessionTask` that a subclass made in the old form of the hook, and whose end its own code follows.
///
/// Suspending does not reach a task that runs on Linux: Foundation sends the request again there, and mixes the bytes.
final class FoundationTask: NetworkTask {
    private let task: URLSessionTask

    init(_ task: URLSessionTask) {
        self.task = task
    }

    func resume() { task.resume() }

    func suspend() {
        #if canImport(Darwin)
            task.suspend()
        #endif
    }

    func cancel() {
        // On Linux it waits for the queue of the session, which may wait for a lock of the caller's.
        DispatchQueue.global().async { [task] in task.cancel() }
    }

    func hold() {}
    func proceed() {}
}
