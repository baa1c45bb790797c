// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import Synchronization

/// How many requests may go to one host at a time: a category for each, in which operations wait without a place in the
/// queue, so that other hosts are served meanwhile.
final class HostCategories: Sendable {
    private let limit: Int
    private let known = Mutex<[String: OperationCategory]>([:])

    init(limit: Int) {
        self.limit = limit
    }

    func category(of url: URL) -> OperationCategory {
        // However it is spelled: letters of either case, the port that goes without saying.
        let host = WebOrigin(url)?.description ?? url.absoluteString
        return known.withLock { known in
            if let category = known[host] { return category }
            let category = OperationCategory(host, limit: limit)
            known[host] = category
            return category
        }
    }
}
