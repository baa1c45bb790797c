// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import Synchronization

/// A recorder that reports once for each attempt of a download which bytes of earlier attempts the attempt resumes.
final class DownloadStarts: Sendable {
    private let item: DownloadItem
    private let reporter: Reporter
    private let last = Mutex<DownloadStart?>(nil)

    init(_ item: DownloadItem, _ reporter: Reporter) {
        self.item = item
        self.reporter = reporter
    }

    func note(_ operation: NetworkOperation<URL, URL>) {
        guard let start = (operation as? NetworkDownloadOperation<URL>)?.downloadStart else { return }
        let isNew = last.withLock { last in
            defer { last = start }
            return last != start
        }
        if isNew { reporter.found(item, resumed: start.resumedBytes, discarded: start.discardedBytes) }
    }
}
