// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A task of Foundation's, and how it may be treated.
struct URLSessionWork {
    let task: any SystemTask
    /// A session that was made for this task alone.
    var session: URLSession?
    var hasEnded = false
    private let canBeSuspended: Bool
    private var brake = CountedSuspension()

    #if canImport(FoundationNetworking)
        /// On Linux Foundation would send the request again, and mix the bytes.
        static let canBeSuspended = false
    #else
        static let canBeSuspended = true
    #endif

    init(task: any SystemTask, session: URLSession? = nil, canBeSuspended: Bool = Self.canBeSuspended) {
        self.task = task
        self.session = session
        self.canBeSuspended = canBeSuspended
    }

    /// Ends it, if it has not ended by itself.
    func stop() {
        if !hasEnded { task.cancel() }
        session?.finishTasksAndInvalidate()
    }

    /// Starts the task, which Foundation makes as a suspended one.
    mutating func start(isSuspended: Bool) {
        brake = CountedSuspension(isSuspended: isSuspended && canBeSuspended)
        if !isSuspended || !canBeSuspended { task.resume() }
    }

    /// Stops both directions, where that can be done.
    mutating func setSuspended(_ isSuspended: Bool) {
        if canBeSuspended { brake.set(isSuspended, on: task) }
    }
}

/// What of a `URLSessionTask` a suspension needs.
package protocol SuspendableTask {
    func suspend()
    func resume()
}

/// The part of a `URLSessionTask` that carriers use, so that a script can take its place in tests.
package protocol SystemTask: AnyObject, SuspendableTask, Sendable {
    var taskIdentifier: Int { get }
    var originalRequest: URLRequest? { get }
    var response: URLResponse? { get }
    var taskDescription: String? { get set }
    var isUpload: Bool { get }
    var isFinished: Bool { get }
    func cancel()
}

extension URLSessionTask: SystemTask {
    package var isUpload: Bool { self is URLSessionUploadTask }
    package var isFinished: Bool { state == .completed }
}

/// Whether a running task of Foundation is suspended.
///
/// Foundation counts suspensions: a task that was suspended twice needs two calls of `resume()`. So the task is called only
/// when something changes.
package struct CountedSuspension {
    private var isSuspended: Bool

    package init(isSuspended: Bool = false) { self.isSuspended = isSuspended }

    package mutating func set(_ wanted: Bool, on task: some SuspendableTask) {
        guard wanted != isSuspended else { return }
        isSuspended = wanted
        wanted ? task.suspend() : task.resume()
    }
}
