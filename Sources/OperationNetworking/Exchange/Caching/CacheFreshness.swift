// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// How old a response is and how old it may become (RFC 9111, sections 4.2.1 to 4.2.3), in seconds.
package struct CacheFreshness: Equatable, Sendable {
    package let age: Int
    package let lifetime: Int

    package init(_ response: CachedResponse, now: Date) {
        let headers = response.headers
        let dated = headers["Date"].flatMap { HTTPDate.parse($0, now: now) } ?? response.received
        age = Self.age(response, dated: dated, now: now)
        lifetime = Self.lifetime(response, dated: dated, now: now)
    }

    package var isFresh: Bool { age < lifetime }

    /// For how long it has been stale.
    package var staleness: Int { age - lifetime }

    private static func age(_ response: CachedResponse, dated: Date, now: Date) -> Int {
        let resident = now.timeIntervalSince(response.received)
        // The clock was set back: nobody knows how old it is.
        guard resident > -60 else { return CacheControl.endless }
        let stated =
            response.headers["Age"].map { $0.utf8.allSatisfy(\.isDigit) ? Int($0) ?? CacheControl.endless : 0 } ?? 0
        let apparent = max(0, response.received.timeIntervalSince(dated))
        let delay = max(0, response.received.timeIntervalSince(response.requested))
        let initial = max(apparent, Double(min(stated, CacheControl.endless)) + delay)
        return whole(initial + max(0, resident))
    }

    private static func lifetime(_ response: CachedResponse, dated: Date, now: Date) -> Int {
        let headers = response.headers
        if let seconds = CacheControl(headers).seconds("max-age") { return seconds }
        if let expires = headers.values("Expires").first {
            // A date that is none, as "0", lies in the past.
            return HTTPDate.parse(expires, now: now).map { whole($0.timeIntervalSince(dated)) } ?? 0
        }
        guard CacheRules.isHeuristic(response.status, headers),
            let modified = headers["Last-Modified"].flatMap({ HTTPDate.parse($0, now: now) })
        else { return 0 }
        return min(whole(dated.timeIntervalSince(modified) / 10), CacheRules.longestHeuristic)
    }

    private static func whole(_ seconds: Double) -> Int {
        Int(min(max(0, seconds), Double(CacheControl.endless)))
    }
}
