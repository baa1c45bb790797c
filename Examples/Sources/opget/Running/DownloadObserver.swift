// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking

/// An observer that reports when a download begins, which is later than the program adds it to a queue.
final class DownloadObserver: NetworkObserver {
    private let begins: @Sendable () -> Void

    init(_ begins: @escaping @Sendable () -> Void) {
        self.begins = begins
    }

    func observe(_ event: NetworkEvent) {
        if event.kind == .operationBegan { begins() }
    }
}
