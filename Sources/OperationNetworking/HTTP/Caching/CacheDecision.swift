// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The decision about a request after a search in the cache (RFC 9111, section 4).
package enum CacheDecision: Equatable, Sendable {
    /// Serve the stored response with this index, whose age is in seconds.
    case serve(Int, age: Int)
    /// Serve the stored response, and revalidate it in the background.
    case serveAndRevalidate(Int, age: Int)
    /// Revalidate the stored response, which may also be served if the server fails.
    ///
    /// If the stored response has no validator, the request is sent unchanged, and its response replaces the stored
    /// one.
    case revalidate(Int)
    /// Send the request as if nothing were stored.
    case forward
    /// Respond with status 504, because the request accepts only a stored response and there is none.
    case unavailable

    /// Decides how to handle a request.
    ///
    /// - Parameters:
    ///   - method: The method of the request.
    ///   - request: The headers of the request as they would be sent.
    ///   - responses: The stored responses at the address.
    ///   - now: The current date.
    ///   - key: The key that hides the values of request headers.
    package static func decide(
        method: String, request: HeaderFields, responses: [CachedResponse], now: Date, key: CacheKey = .none
    ) -> CacheDecision {
        let asked = CacheControl(request)
        let fitting = responses.indices.filter { CacheSelection.fits(responses[$0], request, key: key) }
        let newest = fitting.max { responses[$0].received < responses[$1].received }
        let decision = decide(method: method, request: request, asked: asked, newest, of: responses, now: now)
        switch decision {
        case .forward, .revalidate: return onlyWantsKept(request) ? .unavailable : decision
        default: return decision
        }
    }

    /// Returns whether a stored response can be served for a request with this method.
    package static func mayAnswer(_ method: String) -> Bool { method == "GET" || method == "HEAD" }

    /// Returns whether a request accepts only a stored response (`only-if-cached`).
    static func onlyWantsKept(_ request: HeaderFields) -> Bool { CacheControl(request).has("only-if-cached") }

    private static func decide(
        method: String, request: HeaderFields, asked: CacheControl, _ newest: Int?, of responses: [CachedResponse],
        now: Date
    ) -> CacheDecision {
        guard mayAnswer(method), !asked.has("no-store"), !isUsersOwnCondition(request), let index = newest
        else { return .forward }
        let response = responses[index]
        // Such a response should not have been stored.
        guard !CacheRules.forbidsStoring(response) else { return .forward }
        let control = CacheControl(response.headers)
        let freshness = CacheFreshness(response, now: now)
        if maySend(freshness, control, asked) { return .serve(index, age: freshness.age) }
        if let grace = control.seconds("stale-while-revalidate"), isUnasked(asked), mayBeStale(control),
            !freshness.isFresh, freshness.staleness <= grace, method == "GET"
        {
            return .serveAndRevalidate(index, age: freshness.age)
        }
        // A response to HEAD has no body that could be stored.
        return method == "GET" ? .revalidate(index) : .forward
    }

    /// Returns the age of a stored response that may be served if the server fails (RFC 5861, section 4), otherwise
    /// `nil`.
    package static func staleOnError(_ response: CachedResponse, request: HeaderFields, now: Date) -> Int? {
        let control = CacheControl(response.headers)
        let freshness = CacheFreshness(response, now: now)
        guard !CacheControl(request).has("no-cache") else { return nil }
        let allowed = [control, CacheControl(request)].compactMap { $0.seconds("stale-if-error") }.max()
        guard let allowed, mayBeStale(control), freshness.staleness <= allowed else { return nil }
        return freshness.age
    }

    private static func maySend(_ freshness: CacheFreshness, _ control: CacheControl, _ asked: CacheControl) -> Bool {
        guard !control.has("no-cache"), !asked.has("no-cache") else { return false }
        if freshness.isFresh {
            // An immutable response never changes, so a reload is useless (RFC 8246).
            if control.has("immutable") { return true }
            if let limit = asked.seconds("max-age"), freshness.age > limit { return false }
            if asked.seconds("max-age") == 0 { return false }
            return freshness.lifetime - freshness.age >= (asked.seconds("min-fresh") ?? 0)
        }
        guard let staleness = asked.maximumStaleness, mayBeStale(control), !asked.has("min-fresh") else { return false }
        if let limit = asked.seconds("max-age"), freshness.age > limit { return false }
        return freshness.staleness <= staleness
    }

    private static func mayBeStale(_ control: CacheControl) -> Bool {
        !control.has("must-revalidate") && !control.has("no-cache")
    }

    /// Returns whether a request may be sent and makes no demands on the freshness of its response.
    private static func isUnasked(_ asked: CacheControl) -> Bool {
        !["no-cache", "max-age", "min-fresh", "only-if-cached"].contains { asked.has($0) }
    }

    private static func isUsersOwnCondition(_ request: HeaderFields) -> Bool {
        ["If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range", "Range"]
            .contains { request.contains($0) }
    }
}

/// The rules that select a stored response for a request (RFC 9111, section 4.1).
package enum CacheSelection {
    /// Returns the request headers on which a response depends.
    ///
    /// The headers always include `Authorization` and each other header that ``LogRedaction/secrets`` hides, such as
    /// `X-Api-Key`. The RFC does not require this for a private cache, but the response of one user must never be
    /// served to another. `Cookie` is included only if the response is `private`, because two cookie jars, or two users
    /// of one jar, may share the folder.
    ///
    /// `Accept-Encoding` is included if the body is stored in compressed form, because a client that did not ask for
    /// compression could not read it. A request for a decompressed body never gets a body that was stored as received,
    /// and vice versa.
    ///
    /// Only a checksum of each value is stored, which reveals nothing without the key.
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
    /// store them. Such a response could belong to another cookie jar, so it fits no request.
    package static func fits(_ response: CachedResponse, _ request: HeaderFields, key: CacheKey = .none) -> Bool {
        if response.selecting["cookie"] == nil, CacheControl(response.headers).has("private") { return false }
        // The response was stored for a request without these credentials.
        if credentials(in: request).contains(where: { response.selecting[$0] == nil }) { return false }
        return response.selecting.allSatisfy { name, value in
            value == (name == form ? request.values(form) : self.value(of: name, in: request, key))
        }
    }

    /// Returns the headers of a request, with an additional one for whether its body is to be decompressed.
    package static func selecting(_ headers: HeaderFields, _ options: TransferOptions) -> HeaderFields {
        var selecting = headers
        let wantsDecoded = options.decodesContent && !headers.contains("Accept-Encoding")
        selecting.add(form, wantsDecoded ? "decoded" : "as it comes")
        return selecting
    }

    /// Returns the names of the headers that may identify the user of a request, without `Cookie`.
    private static func credentials(in request: HeaderFields) -> [String] {
        request.filter { LogRedaction.secrets.hides($0) }.map(\.name.asciiLowercased)
            .filter { $0 != "cookie" && $0 != "referer" && $0 != form }
    }

    /// A name that no real header can have.
    private static let form = ":form"

    /// Returns whether a response cannot be served for any other request than its own.
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

/// The rules that decide which responses a private cache stores and removes (RFC 9111, sections 3 and 4.4).
package enum CacheRules {
    /// The maximum lifetime in seconds of a response that states none, which is one week.
    static let longestHeuristic = 7 * 86_400

    private static let heuristicStatuses: Set = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]

    /// Returns whether the lifetime of a response may be estimated.
    static func isHeuristic(_ status: Int, _ headers: HeaderFields) -> Bool {
        heuristicStatuses.contains(status) || CacheControl(headers).has("public")
    }

    /// Returns whether a response may be stored and is useful in the cache.
    ///
    /// - Parameters:
    ///   - response: The response.
    ///   - method: The method of the request.
    ///   - request: The headers of the request as they were sent.
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

    /// Returns whether a response forbids that it is stored.
    static func forbidsStoring(_ response: CachedResponse) -> Bool {
        let control = CacheControl(response.headers)
        // For a status that the cache understands, must-understand overrides no-store.
        if control.has("must-understand") { return !heuristicStatuses.contains(response.status) }
        return control.has("no-store")
    }

    /// Returns whether no other request will have the same `Authorization` header, so that storing its response is
    /// useless.
    ///
    /// A Digest proof is different in each request.
    private static func isUsedOnce(_ authorization: String?) -> Bool {
        authorization?.asciiLowercased.hasPrefix("digest ") == true
    }

    /// Returns the addresses whose stored responses are no longer valid after a request that changes something.
    package static func invalidated(by head: ResponseHead, method: String, at address: WebAddress) -> [WebAddress] {
        guard !["GET", "HEAD", "OPTIONS", "TRACE"].contains(method), (200...399).contains(head.status) else {
            return []
        }
        let others = ["Location", "Content-Location"].flatMap { head.headers.values($0) }
            .compactMap { try? WebAddress($0, foundAt: address) }
        // A server cannot make the responses of other origins invalid.
        return [address] + others.filter { $0.origin == address.origin && $0.resource != address.resource }
    }
}

/// The age and the lifetime of a response in seconds (RFC 9111, sections 4.2.1 to 4.2.3).
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

    /// The time in seconds since the response became stale.
    package var staleness: Int { age - lifetime }

    private static func age(_ response: CachedResponse, dated: Date, now: Date) -> Int {
        let resident = now.timeIntervalSince(response.received)
        // The clock was set back, so the age is unknown.
        guard resident > -60 else { return CacheControl.endless }
        // The first value of a list counts, and an invalid one is ignored.
        let first = (response.headers["Age"] ?? "").split(separator: ",").first.map { String($0).trimmedBlanks } ?? ""
        let isNumber = !first.isEmpty && first.utf8.allSatisfy(\.isDigit)
        let stated = isNumber ? Int(first) ?? CacheControl.endless : 0
        let apparent = max(0, response.received.timeIntervalSince(dated))
        let delay = max(0, response.received.timeIntervalSince(response.requested))
        let initial = max(apparent, Double(min(stated, CacheControl.endless)) + delay)
        return whole(initial + max(0, resident))
    }

    private static func lifetime(_ response: CachedResponse, dated: Date, now: Date) -> Int {
        let headers = response.headers
        if let seconds = CacheControl(headers).seconds("max-age") { return seconds }
        if let expires = headers.values("Expires").first {
            // An invalid date, such as "0", lies in the past.
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

/// The validators of a response, with which it can be revalidated (RFC 9110, section 8.8).
package struct CacheValidator: Equatable, Sendable {
    package let tag: String?
    package let modified: String?

    /// Creates the validators of a response, or returns `nil` if it has none.
    package init?(_ headers: HeaderFields) {
        tag = headers["ETag"].flatMap { $0.isEmpty ? nil : $0 }
        modified = headers["Last-Modified"].flatMap { $0.isEmpty ? nil : $0 }
        if tag == nil, modified == nil { return nil }
    }

    /// Adds the headers that ask whether the response is still valid.
    package func ask(in headers: inout HeaderFields) {
        headers["If-None-Match"] = tag
        headers["If-Modified-Since"] = modified
    }

    /// Returns whether a 304 response refers to this stored response (RFC 9111, section 4.3.4).
    package func isMatched(by head: ResponseHead) -> Bool {
        guard let other = CacheValidator(head.headers) else { return true }
        if let tag, let otherTag = other.tag { return Self.opaque(tag) == Self.opaque(otherTag) }
        if let modified, let otherModified = other.modified { return modified == otherModified }
        return true
    }

    /// Returns a tag without the prefix of a weak tag.
    private static func opaque(_ tag: String) -> String { tag.hasPrefix("W/") ? String(tag.dropFirst(2)) : tag }
}

/// The directives of `Cache-Control` headers (RFC 9111, section 5.2, RFC 5861, RFC 8246).
package struct CacheControl: Equatable, Sendable {
    private var directives: [String: String?] = [:]

    /// The number of seconds that replaces a larger one.
    ///
    /// RFC 9111 asks for 2³¹ or the largest positive integer that can be represented. This one can be represented where
    /// `Int` has 32 bits, as on Apple Watch.
    static let endless = Int(Int32.max)

    /// Parses the values of headers, and skips invalid directives.
    package init(_ fields: [String]) {
        for field in fields {
            for part in Self.split(Array(field.utf8)) { take(part) }
        }
    }

    package init(_ headers: HeaderFields) {
        let fields = headers.values("Cache-Control")
        self.init(fields)
        // The header of HTTP/1.0 counts only if there is no newer one.
        if fields.isEmpty, headers.values("Pragma").contains(where: { $0.asciiLowercased.contains("no-cache") }) {
            directives["no-cache"] = .some(nil)
        }
    }

    /// Returns whether a directive is present, with or without a value.
    package func has(_ name: String) -> Bool { directives[name] != nil }

    /// Returns the number of seconds of a directive, 0 if its value is not a number, or `nil` if the directive is
    /// missing.
    package func seconds(_ name: String) -> Int? {
        directives[name].map(Self.number)
    }

    /// The number of seconds for which a response may be stale, or `nil` if the request accepts no stale response.
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
        // The stricter value of two directives with the same name counts.
        if let known = directives[key], Self.isStricter(known, than: value, for: key) { return }
        directives[key] = .some(value)
    }

    private static func isStricter(_ known: String?, than value: String?, for key: String) -> Bool {
        switch key {
        case "min-fresh": number(known) >= number(value)
        // Without a value, it accepts a response of any age.
        case "max-stale": known.map { number($0) } ?? .max <= value.map { number($0) } ?? .max
        default: number(known) <= number(value)
        }
    }

    private static func number(_ value: String?) -> Int {
        guard let value, !value.isEmpty, value.utf8.allSatisfy(\.isDigit) else { return 0 }
        return min(Int(value) ?? endless, endless)
    }

    /// Splits a value at commas outside of quotation marks.
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
