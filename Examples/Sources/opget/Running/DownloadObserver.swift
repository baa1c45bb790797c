// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationNetworking
import Synchronization

/// Is told when a download begins, which is later than when it was handed to a queue, and what was answered, also where that
/// was refused since something is in its place.
final class DownloadObserver: NetworkObserver {
    private let begins: @Sendable () -> Void
    private let last = Mutex<ResponseHead?>(nil)

    init(_ begins: @escaping @Sendable () -> Void) {
        self.begins = begins
    }

    /// The head of the latest response.
    var head: ResponseHead? { last.withLock { $0 } }

    func observe(_ event: NetworkEvent) {
        if event.kind == .operationBegan { begins() }
        if let head = event.head { last.withLock { $0 = head } }
    }
}
