// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

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

/// Which of several responses at one address fits a request (RFC 9111, section 4.1).
package enum CacheSelection {
    /// What the request says in the fields that the response depends on.
    ///
    /// `Authorization` is always among them, and so is each other field that ``LogRedaction/secrets`` hides, such as
    /// `X-Api-Key`. The RFC does not ask for that of a private cache, but what one user got is never shown to another.
    /// `Cookie` is among them only if the response is `private`, because two cookie jars, or two users of one jar, may share
    /// the folder.
    ///
    /// So is `Accept-Encoding` where the body is kept as it was compressed: who did not ask for that could not read it. And
    /// who wants a body decompressed never gets what was kept for somebody who wants it as it comes, nor the other way
    /// round.
    ///
    /// Of each value a checksum is kept, which says nothing to who does not have the key.
    package static func fields(
        of request: HeaderFields, namedBy response: HeaderFields, isDecoded: Bool = false, key: CacheKey = .none
    ) -> [String: [String]] {
        var fields: [String: [String]] = [:]
        let isCoded = response.contains("Content-Encoding")
        var names = names(response) + ["authorization"] + credentials(in: request)
        if isCoded, !isDecoded { names.append("accept-encoding") }
        if CacheControl(response).has("private") { names.append("cookie") }
        for name in names {
            fields[name] = value(of: name, in: request, key)
        }
        if isCoded { fields[form] = request.values(form) }
        return fields
    }

    /// Returns whether a stored response fits a request.
    ///
    /// A `private` response without the cookies of its request was stored by a version of this library that did not
    /// store them. It could belong to another cookie jar, so it fits no request.
    package static func fits(_ response: CachedResponse, _ request: HeaderFields, key: CacheKey = .none) -> Bool {
        if response.selecting["cookie"] == nil, CacheControl(response.headers).has("private") { return false }
        // It was stored for a request without them.
        if credentials(in: request).contains(where: { response.selecting[$0] == nil }) { return false }
        return response.selecting.allSatisfy { name, value in
            value == (name == form ? request.values(form) : self.value(of: name, in: request, key))
        }
    }

    /// The fields of a request, and beside them whether it wants its body decompressed.
    package static func wishes(_ headers: HeaderFields, _ options: TransferOptions) -> HeaderFields {
        var wishes = headers
        let wantsDecoded = options.decodesContent && !headers.contains("Accept-Encoding")
        wishes.add(form, wantsDecoded ? "decoded" : "as it comes")
        return wishes
    }

    /// The names of the fields that may say which user a request is for, without `Cookie`.
    private static func credentials(in request: HeaderFields) -> [String] {
        request.filter { LogRedaction.secrets.hides($0) }.map(\.name.asciiLowercased)
            .filter { $0 != "cookie" && $0 != "referer" && $0 != form }
    }

    /// No field has such a name.
    private static let form = ":form"

    /// Whether a response fits no other request than its own.
    package static func fitsNothing(_ response: HeaderFields) -> Bool { names(response).contains("*") }

    private static func names(_ response: HeaderFields) -> [String] {
        response.values("Vary").flatMap { $0.split(separator: ",") }
            .map { String($0).trimmedBlanks.asciiLowercased }.filter { !$0.isEmpty }
    }

    private static func value(of name: String, in request: HeaderFields, _ key: CacheKey) -> [String] {
        let values = request.values(name)
        guard !values.isEmpty else { return [] }
        let joined = values.map(\.trimmedBlanks).joined(separator: ", ")
        return [key.hidden(joined)]
    }
}

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

/// What a response can be asked about again with (RFC 9110, section 8.8).
package struct CacheValidator: Equatable, Sendable {
    package let tag: String?
    package let modified: String?

    /// The validators of a response; nil if it has none.
    package init?(_ headers: HeaderFields) {
        tag = headers["ETag"].flatMap { $0.isEmpty ? nil : $0 }
        modified = headers["Last-Modified"].flatMap { $0.isEmpty ? nil : $0 }
        if tag == nil, modified == nil { return nil }
    }

    /// Puts the question to the server whether it still holds.
    package func ask(in headers: inout HeaderFields) {
        headers["If-None-Match"] = tag
        headers["If-Modified-Since"] = modified
    }

    /// Whether an answer that it still holds is about this very response (RFC 9111, section 4.3.4).
    package func isMeant(by head: ResponseHead) -> Bool {
        guard let other = CacheValidator(head.headers) else { return true }
        if let tag, let otherTag = other.tag { return Self.opaque(tag) == Self.opaque(otherTag) }
        if let modified, let otherModified = other.modified { return modified == otherModified }
        return true
    }

    /// The tag without the mark of a weak one.
    private static func opaque(_ tag: String) -> String { tag.hasPrefix("W/") ? String(tag.dropFirst(2)) : tag }
}

/// The directives of `Cache-Control` fields (RFC 9111, section 5.2, RFC 5861, RFC 8246).
package struct CacheControl: Equatable, Sendable {
    private var directives: [String: String?] = [:]

    /// The number of seconds that replaces a larger one.
    ///
    /// RFC 9111 asks for 2³¹ or the largest positive integer that can be represented. This one can be represented where
    /// `Int` has 32 bits, as on Apple Watch.
    static let endless = Int(Int32.max)

    /// Reads the fields; what cannot be read is left out.
    package init(_ fields: [String]) {
        for field in fields {
            for part in Self.split(Array(field.utf8)) { take(part) }
        }
    }

    package init(_ headers: HeaderFields) {
        let fields = headers.values("Cache-Control")
        self.init(fields)
        // The word of HTTP/1.0, which counts where there is nothing newer.
        if fields.isEmpty, headers.values("Pragma").contains(where: { $0.asciiLowercased.contains("no-cache") }) {
            directives["no-cache"] = .some(nil)
        }
    }

    /// Whether a directive is there, with or without a value.
    package func has(_ name: String) -> Bool { directives[name] != nil }

    /// The number of seconds of a directive; zero where it has a value that is none, nil if it is not there.
    package func seconds(_ name: String) -> Int? {
        directives[name].map(Self.number)
    }

    /// How stale a response may be for the request: nil for not at all.
    package var maximumStaleness: Int? {
        guard let value = directives["max-stale"] else { return nil }
        return value == nil ? Self.endless : seconds("max-stale")
    }

    private mutating func take(_ part: ArraySlice<UInt8>) {
        let equals = part.firstIndex(of: UInt8(ascii: "="))
        let name = String(decoding: part[..<(equals ?? part.endIndex)].withoutBlanksAround, as: UTF8.self)
        guard name.isToken else { return }
        let key = name.asciiLowercased
        var value: String?
        if let equals {
            var bytes = part[(equals + 1)...].withoutBlanksAround
            let quote = UInt8(ascii: "\"")
            if bytes.count >= 2, bytes.first == quote, bytes.last == quote { bytes = bytes.dropFirst().dropLast() }
            value = String(decoding: bytes, as: UTF8.self)
        }
        // Of two of one name the one counts that lets less pass.
        if let known = directives[key], Self.number(known) <= Self.number(value) { return }
        directives[key] = .some(value)
    }

    private static func number(_ value: String?) -> Int {
        guard let value, !value.isEmpty, value.utf8.allSatisfy(\.isDigit) else { return 0 }
        return min(Int(value) ?? endless, endless)
    }

    /// Parts at commas outside of quotation marks.
    private static func split(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        var parts: [ArraySlice<UInt8>] = []
        var start = 0
        var index = 0
        var isQuoted = false
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\""): isQuoted.toggle()
            case UInt8(ascii: "\\") where isQuoted: index += 1
            case UInt8(ascii: ",") where !isQuoted:
                parts.append(bytes[start..<index])
                start = index + 1
            default: break
            }
            index += 1
        }
        return parts + [bytes[start...]]
    }
}
