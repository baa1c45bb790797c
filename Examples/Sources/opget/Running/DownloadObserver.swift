// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationNetworking
import Synchronization

/// An observer that reports when a download begins, and stores the headers of its response.
///
/// A download begins later than the program adds it to a queue. The headers are also available if opget rejects the
/// response because the file already exists.
final class DownloadObserver: NetworkObserver {
    private let begins: @Sendable () -> Void
    private let last = Mutex<ResponseHead?>(nil)

    init(_ begins: @escaping @Sendable () -> Void) {
        self.begins = begins
    }

    /// The headers of the latest response.
    var head: ResponseHead? { last.withLock { $0 } }

    func observe(_ event: NetworkEvent) {
        if event.kind == .operationBegan { begins() }
        if let head = event.head { last.withLock { $0 = head } }
    }
}
