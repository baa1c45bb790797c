// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What is done with a request for which the cache was asked (RFC 9111, section 4).
package enum CacheDecision: Equatable, Sendable {
    /// The response that is kept is the answer, so many seconds old.
    case serve(Int, age: Int)
    /// The same, and the server is asked meanwhile whether it still holds.
    case serveAndRevalidate(Int, age: Int)
    /// The server is asked whether the stored response is still valid, if the response has a validator. If the server
    /// fails, the stored response may be the answer.
    case revalidate(Int)
    /// The server is asked as if nothing was kept.
    case forward
    /// Only what is kept was wanted, and nothing is: status 504.
    case unavailable

    /// Decides.
    ///
    /// - Parameters:
    ///   - method: The request's method.
    ///   - request: Its header fields as they would be sent.
    ///   - responses: What is kept at its address.
    ///   - now: What time it is.
    ///   - key: What the fields of the requests are hidden with.
    package static func decide(
        method: String, request: HeaderFields, responses: [CachedResponse], now: Date, key: CacheKey = .none
    ) -> CacheDecision {
        let wish = CacheControl(request)
        let fitting = responses.indices.filter { CacheSelection.fits(responses[$0], request, key: key) }
        let newest = fitting.max { responses[$0].received < responses[$1].received }
        let decision = decide(method: method, request: request, wish: wish, newest, of: responses, now: now)
        switch decision {
        case .forward, .revalidate: return onlyWantsKept(request) ? .unavailable : decision
        default: return decision
        }
    }

    /// Whether a stored response can be the answer to a request with that method.
    package static func mayAnswer(_ method: String) -> Bool { method == "GET" || method == "HEAD" }

    /// Whether nothing is to be sent, come what may.
    static func onlyWantsKept(_ request: HeaderFields) -> Bool { CacheControl(request).has("only-if-cached") }

    private static func decide(
        method: String, request: HeaderFields, wish: CacheControl, _ newest: Int?, of responses: [CachedResponse],
        now: Date
    ) -> CacheDecision {
        guard mayAnswer(method), !wish.has("no-store"), !isUsersOwnCondition(request), let index = newest
        else { return .forward }
        let response = responses[index]
        // It should not be there at all.
        guard !CacheRules.forbidsStoring(response) else { return .forward }
        let control = CacheControl(response.headers)
        let freshness = CacheFreshness(response, now: now)
        if maySend(freshness, control, wish) { return .serve(index, age: freshness.age) }
        if let grace = control.seconds("stale-while-revalidate"), isUnasked(wish), mayBeStale(control),
            !freshness.isFresh, freshness.staleness <= grace, method == "GET"
        {
            return .serveAndRevalidate(index, age: freshness.age)
        }
        // HEAD says nothing about a body that could be kept.
        guard method == "GET" else { return .forward }
        let isForFailures = staleOnError(response, request: request, now: now) != nil
        return CacheValidator(response.headers) != nil || isForFailures ? .revalidate(index) : .forward
    }

    /// Whether what is kept may be the answer though the server failed (RFC 5861, section 4): returns its age.
    package static func staleOnError(_ response: CachedResponse, request: HeaderFields, now: Date) -> Int? {
        let control = CacheControl(response.headers)
        let freshness = CacheFreshness(response, now: now)
        guard !CacheControl(request).has("no-cache") else { return nil }
        let allowed = [control, CacheControl(request)].compactMap { $0.seconds("stale-if-error") }.max()
        guard let allowed, mayBeStale(control), freshness.staleness <= allowed else { return nil }
        return freshness.age
    }

    private static func maySend(_ freshness: CacheFreshness, _ control: CacheControl, _ wish: CacheControl) -> Bool {
        guard !control.has("no-cache"), !wish.has("no-cache") else { return false }
        if freshness.isFresh {
            // Made never to change: to reload it asks for nothing new (RFC 8246).
            if control.has("immutable") { return true }
            if let limit = wish.seconds("max-age"), freshness.age > limit { return false }
            if wish.seconds("max-age") == 0 { return false }
            return freshness.lifetime - freshness.age >= (wish.seconds("min-fresh") ?? 0)
        }
        guard let staleness = wish.maximumStaleness, mayBeStale(control), !wish.has("min-fresh") else { return false }
        if let limit = wish.seconds("max-age"), freshness.age > limit { return false }
        return freshness.staleness <= staleness
    }

    private static func mayBeStale(_ control: CacheControl) -> Bool {
        !control.has("must-revalidate") && !control.has("no-cache")
    }

    /// Whether the request says nothing about how fresh the answer must be, nor that nothing is to be sent.
    private static func isUnasked(_ wish: CacheControl) -> Bool {
        !["no-cache", "max-age", "min-fresh", "only-if-cached"].contains { wish.has($0) }
    }

    private static func isUsersOwnCondition(_ request: HeaderFields) -> Bool {
        ["If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range", "Range"]
            .contains { request.contains($0) }
    }
}
