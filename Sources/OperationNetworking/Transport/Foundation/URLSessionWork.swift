// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A task of Foundation's, and how it may be treated.
struct URLSessionWork {
    let task: URLSessionTask
    /// A session that was made for this task alone.
    var session: URLSession?
    var hasEnded = false
    private var brake = CountedSuspension()

    init(task: URLSessionTask, session: URLSession? = nil) {
        self.task = task
        self.session = session
    }

    /// Ends it, if it has not ended by itself.
    func stop() {
        if !hasEnded { task.cancel() }
        session?.finishTasksAndInvalidate()
    }

    /// Stops both directions, where that can be done.
    ///
    /// On Linux Foundation would send the request again, and mix the bytes.
    mutating func setSuspended(_ isSuspended: Bool) {
        #if !canImport(FoundationNetworking)
            brake.set(isSuspended, on: task)
        #endif
    }
}

/// What of a `URLSessionTask` a suspension needs.
package protocol SuspendableTask {
    func suspend()
    func resume()
}

extension URLSessionTask: SuspendableTask {}

/// Whether a running task of Foundation is suspended.
///
/// Foundation counts suspensions: a task that was suspended twice needs two calls of `resume()`. So the task is called only
/// when something changes.
package struct CountedSuspension {
    private var isSuspended = false

    package init() {}

    package mutating func set(_ wanted: Bool, on task: some SuspendableTask) {
        guard wanted != isSuspended else { return }
        isSuspended = wanted
        wanted ? task.suspend() : task.resume()
    }
}
