// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import Synchronization

/// Categories that limit the number of simultaneous requests to each host.
///
/// While an operation waits for its category, it does not use a slot in the queue, so requests to other hosts can run.
final class HostCategories: Sendable {
    private let limit: Int
    private let known = Mutex<[String: OperationCategory]>([:])

    init(limit: Int) {
        self.limit = limit
    }

    func category(of url: URL) -> OperationCategory {
        // Different spellings of a host use the same category, for example with uppercase letters or with the default
        // port.
        let host = WebOrigin(url)?.description ?? url.absoluteString
        return known.withLock { known in
            if let category = known[host] { return category }
            let category = OperationCategory(host, limit: limit)
            known[host] = category
            return category
        }
    }
}
