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

    /// Ends it, if it has not ended by itself.
    func stop() {
        if !hasEnded { task.cancel() }
        session?.finishTasksAndInvalidate()
    }

    /// Stops both directions, where that can be done.
    ///
    /// On Linux Foundation would send the request again, and mix the bytes.
    func setSuspended(_ isSuspended: Bool) {
        #if canImport(Darwin)
            isSuspended ? task.suspend() : task.resume()
        #endif
    }
}
