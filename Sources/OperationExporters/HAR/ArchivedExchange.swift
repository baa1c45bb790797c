// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// A request and its response, as an archive recorded them.
///
/// The value holds no user objects, because it is released under a lock.
struct ArchivedExchange: Sendable {
    /// The request in its redacted form, so that no secrets are kept.
    let request: ArchiveEntry.Request
    let date: Date
    let began: OperationInstant
    let operationID: UInt64
    let operationName: String
    let attempt: Int
    let hop: Int
    /// Whether the response came from the cache, after the requests of the attempt had ended.
    let isFromCache: Bool
    private(set) var bodySent: OperationInstant?
    private(set) var responded: OperationInstant?
    private(set) var ended: OperationInstant?
    private(set) var head: ResponseHead?
    private(set) var metrics: TransferMetrics?
    private(set) var error: NetworkError?
    private(set) var ending: NetworkEvent.Ending?
    private(set) var body: Data?
    private(set) var receivedBytes: Int64?

    init(_ event: NetworkEvent, _ options: NetworkArchive.Options, isFromCache: Bool = false) {
        request = ArchiveEntry.request(event.request, options)
        // Only the years 1 to 9999 have a text in the format of the archive. The date of a test may not be a number.
        let hasText = (-62_135_596_800..<253_402_300_800).contains(event.date.timeIntervalSince1970)
        date = hasText ? event.date : Date(timeIntervalSince1970: 0)
        (began, self.isFromCache) = (event.moment, isFromCache)
        (operationID, operationName) = (event.operationID, event.operationName)
        (attempt, hop) = (event.attempt, event.hop)
    }

    mutating func note(_ event: NetworkEvent) {
        switch event.kind {
        case .bodySent: bodySent = event.moment
        case .leftBehind, .responded: (head, responded) = (event.head, event.moment)
        case .hopEnded: (ended, metrics) = (event.moment, event.metrics)
        default: break
        }
    }

    /// Records the end of the attempt whose last exchange this is.
    mutating func end(_ event: NetworkEvent) {
        if !isFromCache { metrics = metrics ?? event.metrics }
        ended = ended ?? event.moment
        (error, ending) = (event.error, event.ending)
        (body, receivedBytes) = (event.responseBody, event.receivedBytes)
    }
}

/// The times of an entry in milliseconds, where -1 is an unknown time or a phase that did not occur.
struct ArchiveTimings: Sendable, Codable {
    var blocked = -1.0
    var dns = -1.0
    var connect = -1.0
    var ssl = -1.0
    var send = 0.0
    var wait = 0.0
    var receive = 0.0

    /// The total time, where the time for the connection includes the time for TLS.
    var sum: Double { [blocked, dns, connect, send, wait, receive].reduce(0) { $0 + max($1, 0) } }

    init(_ exchange: ArchivedExchange) {
        let end = exchange.ended ?? exchange.responded ?? exchange.began
        guard let metrics = exchange.metrics, let whole = metrics.ended else {
            // Without metrics, only the times of the events are known.
            let answered = exchange.responded ?? end
            send = exchange.bodySent.map { exchange.began.duration(to: min($0, answered)).milliseconds } ?? 0
            wait = max(exchange.began.duration(to: answered).milliseconds - send, 0)
            receive = answered.duration(to: max(end, answered)).milliseconds
            return
        }
        let phases = TransferPhases(metrics, bodySent: exchange.bodySent.map { exchange.began.duration(to: $0) })
        blocked = phases[.queued]?.milliseconds ?? -1
        dns = phases[.dns]?.milliseconds ?? -1
        if let time = phases[.connect] { connect = (time + (phases[.tls] ?? .zero)).milliseconds }
        ssl = phases[.tls]?.milliseconds ?? -1
        send = phases[.request]?.milliseconds ?? 0
        wait = phases[.wait]?.milliseconds ?? 0
        receive = phases[.receive]?.milliseconds ?? 0
        // The remaining time passed before the request was sent, or without a response.
        let rest = max(max(whole, .zero).milliseconds - sum, 0)
        guard rest > 0 else { return }
        if metrics.requestBegan == nil || metrics.firstByte != nil {
            blocked = max(blocked, 0) + rest
        } else {
            wait += rest
        }
    }
}

extension Duration {
    fileprivate var milliseconds: Double { Double(saturatedNanoseconds) / 1e6 }
}

// Creates entries without the information that the options omit.
extension ArchiveEntry {
    private static let stars = "***"

    init(_ exchange: ArchivedExchange, _ options: NetworkArchive.Options) {
        let timings = ArchiveTimings(exchange)
        startedDateTime = exchange.date.formatted(
            Date.ISO8601FormatStyle(includingFractionalSeconds: true))
        time = timings.sum
        self.timings = timings
        request = exchange.request.sent(as: Self.version(exchange))
        response = Self.response(exchange, options)
        serverIPAddress = exchange.metrics?.remoteAddress.map(Self.withoutPort)
        var words = ["\(exchange.operationName) #\(exchange.operationID)", "attempt \(exchange.attempt)"]
        if exchange.hop > 0 { words.append("request \(exchange.hop)") }
        if exchange.isFromCache {
            words.append("response from the cache")
        } else if exchange.hop == 0, exchange.metrics == nil, exchange.head != nil {
            words.append("sent by a session without metrics, or response from the cache")
        }
        comment = words.joined(separator: ", ")
    }

    /// Returns the description of a request, without its secrets and its body, as soon as the event arrives.
    static func request(_ request: NetworkRequest?, _ options: NetworkArchive.Options) -> Request {
        let redaction = options.redaction
        guard let request else {
            return Request(
                method: "GET", url: "", httpVersion: "unknown", cookies: [], headers: [], queryString: [],
                postData: nil, headersSize: -1, bodySize: -1)
        }
        return Request(
            method: request.method,
            url: request.summary(redaction).url,
            httpVersion: "unknown", cookies: cookies(request.headers, redaction),
            headers: pairs(request.headers, redaction), queryString: query(request.url, redaction),
            postData: postData(request, options), headersSize: -1,
            bodySize: request.body.isNone ? 0 : request.body.length ?? -1)
    }

    private static func response(_ exchange: ArchivedExchange, _ options: NetworkArchive.Options) -> Response {
        let redaction = options.redaction
        let end = exchange.ending == .cancelled ? "canceled" : nil
        let failure = exchange.error.map { redaction.text(of: $0) } ?? end
        guard let head = exchange.head else {
            return Response(
                status: 0, statusText: "", httpVersion: version(exchange), cookies: [], headers: [],
                content: Content(size: 0, mimeType: "x-unknown"), redirectURL: "", headersSize: -1, bodySize: -1,
                _error: failure ?? "no response")
        }
        let location = head.headers.first { $0.name.lowercased() == "location" }
        return Response(
            status: head.status, statusText: redaction.withoutNamedSecrets(head.reason), httpVersion: version(exchange),
            cookies: setCookies(head.headers, at: exchange.date, redaction), headers: pairs(head.headers, redaction),
            content: content(exchange, head, options), redirectURL: location.map { redaction.value(of: $0) } ?? "",
            headersSize: exchange.metrics.map { $0.headerBytesReceived > 0 ? $0.headerBytesReceived : -1 } ?? -1,
            bodySize: exchange.metrics?.bodyBytesReceived ?? -1, _error: failure)
    }

    private static func version(_ exchange: ArchivedExchange) -> String {
        (exchange.metrics?.version ?? exchange.head?.version)?.description ?? "unknown"
    }

    private static func pairs(_ fields: HeaderFields, _ redaction: LogRedaction) -> [Pair] {
        fields.map { Pair(name: $0.name, value: redaction.value(of: $0)) }
    }

    private static func type(_ fields: HeaderFields, _ options: NetworkArchive.Options) -> String? {
        fields["Content-Type"].map { options.redaction.withoutSecrets(inHeader: $0) }
    }

    private static func query(_ url: URL, _ redaction: LogRedaction) -> [Pair] {
        guard let query = URLComponents(url: url, resolvingAgainstBaseURL: true)?.percentEncodedQuery, !query.isEmpty
        else {
            return []
        }
        return query.split(separator: "&").map { part in
            // A part without a name may be a secret.
            if !redaction.keepsSecrets, redaction.shownName(ofPart: part) == nil {
                return Pair(name: stars, value: "")
            }
            let sides = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map { side in
                let text = side.replacing("+", with: " ")
                return text.removingPercentEncoding ?? String(text)
            }
            guard redaction.keepsSecrets else { return Pair(name: sides[0], value: stars) }
            return Pair(name: sides[0], value: sides.count > 1 ? sides[1] : "")
        }
    }

    private static func cookies(_ fields: HeaderFields, _ redaction: LogRedaction) -> [Cookie] {
        fields.values("Cookie").flatMap { $0.split(separator: ";") }.map { part in
            let sides = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = sides[0].trimmingCharacters(in: .whitespaces)
            let value = sides.count > 1 ? sides[1].trimmingCharacters(in: .whitespaces) : ""
            if redaction.keepsSecrets { return Cookie(name: name, value: value) }
            return sides.count > 1 ? Cookie(name: name, value: stars) : Cookie(name: stars, value: "")
        }
    }

    private static func setCookies(_ fields: HeaderFields, at date: Date, _ redaction: LogRedaction) -> [Cookie] {
        fields.values("Set-Cookie").compactMap { SetCookie($0, now: date) }.map { cookie in
            // If one header contains several cookies, an attribute may extend into the next cookie.
            func shown(_ text: String?) -> String? {
                guard let text, !text.isEmpty else { return nil }
                return redaction.keepsSecrets || !text.contains(where: { ",=".contains($0) }) ? text : stars
            }
            return Cookie(
                name: cookie.name, value: redaction.keepsSecrets ? cookie.value : stars, path: shown(cookie.path),
                domain: shown(cookie.domain),
                expires: cookie.expires.map { max($0, Date(timeIntervalSince1970: 0)).formatted(.iso8601) },
                httpOnly: cookie.isHTTPOnly, secure: cookie.isSecure)
        }
    }

    private static func postData(_ request: NetworkRequest, _ options: NetworkArchive.Options) -> PostData? {
        guard !request.body.isNone else { return nil }
        let type = type(request.headers, options) ?? "application/octet-stream"
        guard options.keepsBodies else { return PostData(mimeType: type, text: "", comment: "bodies are not kept") }
        guard let data = request.body.bytesInMemory else {
            return PostData(mimeType: type, text: "", comment: "left out: the body is a file or a stream")
        }
        if let fields = form(data, type, options) { return PostData(mimeType: type, params: fields) }
        let shown = ShownBody(data, options)
        let words = [shown.isBase64 ? "in base64" : nil, shown.comment].compactMap { $0 }
        return PostData(
            mimeType: type, text: shown.text ?? "", comment: words.isEmpty ? nil : words.joined(separator: ", "))
    }

    /// Returns the fields of a form, or nil for other bodies and for a form that exceeds the limit.
    private static func form(_ data: Data, _ type: String, _ options: NetworkArchive.Options) -> [Pair]? {
        guard data.count <= max(options.bodyBytes, 0) else { return nil }
        return options.redaction.form(data, type: type)?.map { Pair(name: $0.name, value: $0.value ?? "") }
    }

    private static func content(
        _ exchange: ArchivedExchange, _ head: ResponseHead, _ options: NetworkArchive.Options
    ) -> Content {
        let type = type(head.headers, options) ?? "x-unknown"
        let wire = exchange.metrics?.bodyBytesReceived
        let size =
            exchange.receivedBytes.flatMap { $0 > 0 ? $0 : nil } ?? exchange.body.map { Int64($0.count) } ?? wire ?? 0
        var content = Content(size: size, mimeType: type)
        if head.isDecoded, let wire, wire > 0, size >= wire { content.compression = size - wire }
        guard options.keepsBodies else { return content }
        guard let body = exchange.body else {
            if size > 0 { content.comment = "left out: the body was not in memory" }
            return content
        }
        // In a response without a body, the length in the headers is that of another response.
        let hasBody = exchange.request.method != "HEAD" && head.status != 204 && head.status != 304
        let announced = hasBody && !head.isDecoded ? head.expectedLength ?? 0 : 0
        let shown = ShownBody(body, options, of: max(size, announced, Int64(body.count)))
        (content.text, content.comment) = (shown.text, shown.comment)
        if shown.isBase64 { content.encoding = "base64" }
        return content
    }

    private static func withoutPort(_ address: String) -> String {
        if address.hasPrefix("[") { return String(address.dropFirst().prefix { $0 != "]" }) }
        return address.lastIndex(of: ":").map { String(address[..<$0]) } ?? address
    }
}

/// The representation of a body in an archive.
private struct ShownBody {
    var text: String?
    var isBase64 = false
    var comment: String?

    /// - Parameter whole: The size of the whole body, of which `body` is the beginning. The default is the size of
    ///   `body`.
    init(_ body: Data, _ options: NetworkArchive.Options, of whole: Int64? = nil) {
        let whole = whole ?? Int64(body.count)
        let limit = max(options.bodyBytes, 0)
        guard options.redaction.keepsSecrets else {
            text = options.redaction.json(of: body, limit: limit)
            if text == nil { comment = "left out: the body is not JSON or is too long, and may contain secrets" }
            return
        }
        let kept = body.prefix(limit)
        // The body of a rejected response comes with its error, which contains only the beginning.
        if whole > kept.count { comment = "the first \(kept.count) of \(whole) bytes" }
        // Foundation's initializer would drop a byte order mark. The limit may be within a character.
        if let whole = String(validating: body, as: UTF8.self), !whole.utf8.contains(0) {
            text = body.count > limit ? String(decoding: kept, as: UTF8.self) : whole
        } else {
            (text, isBase64) = (kept.base64EncodedString(), true)
        }
    }
}
