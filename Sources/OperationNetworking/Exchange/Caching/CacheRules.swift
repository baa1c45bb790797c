// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What a private cache may keep, and what makes it forget (RFC 9111, sections 3 and 4.4).
package enum CacheRules {
    /// The longest time for which a response is fresh because nothing else is said: a week.
    static let longestHeuristic = 7 * 86_400

    private static let heuristicStatuses: Set = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]

    /// Whether the lifetime may be guessed.
    static func isHeuristic(_ status: Int, _ headers: HeaderFields) -> Bool {
        heuristicStatuses.contains(status) || CacheControl(headers).has("public")
    }

    /// Whether a response may be kept and is of any use then.
    ///
    /// - Parameters:
    ///   - response: The response.
    ///   - method: The request's method.
    ///   - request: The request's header fields as they were sent.
    package static func mayStore(_ response: CachedResponse, method: String, request: HeaderFields) -> Bool {
        let headers = response.headers
        let control = CacheControl(headers)
        guard method == "GET", (200...599).contains(response.status), ![206, 304].contains(response.status),
            !request.contains("Range"), !CacheControl(request).has("no-store"), !isUsedOnce(request["Authorization"]),
            !CacheSelection.fitsNothing(headers), !forbidsStoring(response)
        else { return false }
        let isAllowed =
            control.has("max-age") || headers.contains("Expires") || control.has("private")
            || isHeuristic(response.status, headers)
        let freshness = CacheFreshness(response, now: response.received)
        let mayBeStale = ["stale-if-error", "stale-while-revalidate"].contains { (control.seconds($0) ?? 0) > 0 }
        let isOfUse =
            ((freshness.isFresh || mayBeStale && !control.has("must-revalidate")) && !control.has("no-cache"))
            || CacheValidator(headers) != nil
        return isAllowed && isOfUse
    }

    /// Whether a response says that it is not to be kept.
    static func forbidsStoring(_ response: CachedResponse) -> Bool {
        let control = CacheControl(response.headers)
        // must-understand takes the place of no-store, for those who understand the status.
        if control.has("must-understand") { return !heuristicStatuses.contains(response.status) }
        return control.has("no-store")
    }

    /// Whether no other request will have the same `Authorization`: a proof of Digest is another one each time, and what is
    /// kept is for who has the same.
    private static func isUsedOnce(_ authorization: String?) -> Bool {
        authorization?.asciiLowercased.hasPrefix("digest ") == true
    }

    /// The addresses whose responses are no longer to be trusted after a request that changes something.
    package static func invalidated(by head: ResponseHead, method: String, at address: WebAddress) -> [WebAddress] {
        guard !["GET", "HEAD", "OPTIONS", "TRACE"].contains(method), (200...399).contains(head.status) else {
            return []
        }
        let others = ["Location", "Content-Location"].flatMap { head.headers.values($0) }
            .compactMap { try? WebAddress($0, foundAt: address) }
        // Of other origins nobody is believed.
        return [address] + others.filter { $0.origin == address.origin && $0.resource != address.resource }
    }
}
