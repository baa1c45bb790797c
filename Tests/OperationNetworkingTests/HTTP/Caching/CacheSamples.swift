// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

/// A fixed moment and sample responses that the cache tests share.
enum CacheSamples {
    static let now = Date(timeIntervalSince1970: 1_700_000_000)

    static func head(_ status: Int = 200, _ headers: HeaderFields) throws -> ResponseHead {
        guard let url = URL(string: "https://h.com/a") else { throw CocoaError(.fileNoSuchFile) }
        return ResponseHead(url: url, status: status, headers: headers)
    }

    /// A response received `received` seconds after the moment, to a request that was sent `delay` seconds earlier.
    static func response(
        _ status: Int = 200, _ headers: HeaderFields, to request: HeaderFields = [:], received: Double = 0,
        delay: Double = 0
    ) throws -> CachedResponse {
        let moment = now + received
        return CachedResponse(
            try head(status, headers), to: request, requested: moment - delay, received: moment)
    }

    static func date(_ seconds: Double) -> String { HTTPDate.text(now + seconds) }
}
