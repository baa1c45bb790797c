// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A task of a `URLSession` as a ``NetworkSession``.
typealias CarriedTask = SessionTask<URLSessionCarrier>

extension URLSessionCarrier: TaskCarrier {
    typealias Transfer = CarriedTransfer

    struct Extras {
        /// The session is kept for its tasks.
        var owner: URLSession?
        /// A task that the system carries out already, for which this one is to wait.
        var existing: (any SystemTask)?
    }
}
