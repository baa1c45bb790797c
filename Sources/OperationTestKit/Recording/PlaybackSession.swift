// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

extension NetworkError.Code {
    /// An error code that indicates that a ``PlaybackSession`` has no recorded response to the request.
    public static let notRecorded = Self("notRecorded")
}

/// A session that plays back recorded responses without using a network.
///
/// ```swift
/// import Foundation
/// import OperationNetworking
/// import OperationTestKit
///
/// func songsAreListed(_ base: NetworkBase, recording file: URL) async throws {
///     var base = base
///     let session = try PlaybackSession(contentsOf: file)
///     base.session = session
///     _ = try await base.get("songs", as: [String].self).run()
///     try session.expectAllUsed()
/// }
/// ```
///
/// An exchange is a recorded request with its response. The session uses each exchange for one request. If several
/// unused exchanges match a request, the session uses the first of them in the recording. ``PlaybackRules`` determine
/// whether an exchange matches. If no exchange matches, the request fails with the code `notRecorded`. The error
/// describes the most similar exchange and explains how to record again.
///
/// Before the session compares a request with the recording, it redacts the request in the same way as a
/// ``RecordingSession``. If an exchange failed during the recording, the request fails with the same error. If the
/// exchange was canceled, the response never becomes complete.
public final class PlaybackSession: NetworkSession {
    private static let portionSize = 1 << 16

    /// The recording whose responses the session plays back.
    package let recording: SessionRecording
    private let name: String
    private let rules: PlaybackRules
    private let redactor: RecordingRedactor
    private let bodyLimit: Int
    private let stub: StubSession
    private let book: Locked<PlaybackIndex>
    private let unmatched = EventRecorder<String>()

    /// Creates a session that plays back the responses in a recording.
    ///
    /// - Parameters:
    ///   - recording: The recording whose responses the session plays back.
    ///   - rules: The rules that determine whether a request matches an exchange. By default, the session compares the
    ///     method, the URL and the body.
    ///   - bodyLimit: The maximum number of bytes of each request body that the session keeps in memory. The default is
    ///     `nil`, which uses the limit of the ``RecordingSession``, or 4 MiB if the recording does not contain this
    ///     limit.
    public convenience init(
        _ recording: SessionRecording, rules: PlaybackRules = PlaybackRules(), bodyLimit: Int? = nil
    ) {
        self.init(recording, "the recording", rules, bodyLimit)
    }

    /// Creates a session that plays back the responses in a recording file.
    ///
    /// - Parameters:
    ///   - file: The file that contains the recording.
    ///   - rules: The rules that determine whether a request matches an exchange. By default, the session compares the
    ///     method, the URL and the body.
    ///   - bodyLimit: The maximum number of bytes of each request body that the session keeps in memory. The default is
    ///     `nil`, which uses the limit of the ``RecordingSession``, or 4 MiB if the recording does not contain this
    ///     limit.
    /// - Throws: A ``SessionRecordingError`` if the file is not a readable recording.
    public convenience init(
        contentsOf file: URL, rules: PlaybackRules = PlaybackRules(), bodyLimit: Int? = nil
    ) throws(SessionRecordingError) {
        self.init(try SessionRecording(contentsOf: file), file.path, rules, bodyLimit)
    }

    private init(_ recording: SessionRecording, _ name: String, _ rules: PlaybackRules, _ bodyLimit: Int?) {
        (self.recording, self.name, self.rules) = (recording, name, rules)
        self.bodyLimit = max(bodyLimit ?? recording.bodyLimit ?? RecordingSession.usualBodyLimit, 0)
        redactor = RecordingRedactor(redaction: recording.redaction)
        stub = StubSession(clock: .system, keptBodyBytes: self.bodyLimit)
        book = Locked(PlaybackIndex(recording.exchanges.map { $0.key(rules) }))
        stub.route(nil, "*") { [weak self] request in self?.answer(to: request) ?? .failure(.sessionClosed) }
    }

    deinit { stub.close() }

    /// The exchanges that the session has not used yet.
    package var unusedExchanges: [RecordedExchange] {
        book.withLock { $0.unused }.map { recording.exchanges[$0] }
    }

    /// The methods and URLs of the requests that matched no exchange.
    package var unmatchedRequests: [String] { unmatched.events }

    /// Checks that the session has used all exchanges and that all requests matched an exchange.
    ///
    /// - Parameters:
    ///   - fileID: The source file that the error reports. The default is the caller's file.
    ///   - line: The source line that the error reports. The default is the caller's line.
    /// - Throws: An ``UnmetExpectation`` that lists the unused exchanges and the unmatched requests, if there are any.
    public func expectAllUsed(fileID: String = #fileID, line: Int = #line) throws(UnmetExpectation) {
        let (unused, unmatched) = (unusedExchanges, unmatchedRequests)
        guard !unused.isEmpty || !unmatched.isEmpty else { return }
        throw UnmetExpectation(
            "\(name) was not played as recorded",
            expected: "all of its \(recording.exchanges.count) exchanges, and no other request",
            found:
                "\(unused.count) exchanges that were not requested, \(unmatched.count) requests that are not recorded",
            details: unused.map { "not requested: \($0)" } + unmatched.map { "not recorded: \($0)" }, fileID: fileID,
            line: line)
    }

    /// Creates a task that starts when you first call its `resume()` method.
    public func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        stub.makeTask(with: request, receiver: receiver)
    }

    /// Closes the session.
    ///
    /// All current and later tasks fail with the code `sessionClosed`.
    public func close() { stub.close() }

    private func answer(to request: StubRequest) -> StubAnswer {
        let keys = keys(of: request)
        if let number = book.withLock({ $0.take(keys) }) {
            return StubAnswer(steps: steps(of: recording.exchanges[number], number))
        }
        unmatched.record("\(request.method) \(redactor.url(request.url))")
        return StubAnswer(.fail(refusal(of: request, keys[0])))
    }

    /// Returns the keys of a request without its secrets, or with a checksum if its body cannot be redacted.
    private func keys(of request: StubRequest) -> [PlaybackKey] {
        let raw = request.bodyCount == 0 ? PlaybackKey.body(Data()) : request.bodyHash
        let whole = request.bodyCount <= bodyLimit ? request.body : nil
        let message = redactor.message(request.headers, whole)
        let opaque = whole.map { redactor.checksum(request.headers, $0) }
        let bodies = [message.body.map { PlaybackKey.body($0) }, opaque, raw, PlaybackKey.anyBody]
        return bodies.compactMap(\.self).map { body in
            PlaybackKey(
                method: request.method, url: redactor.url(request.url), body: body, headers: message.headers, rules)
        }
    }

    private func steps(of exchange: RecordedExchange, _ number: Int) -> [StubAnswer.Step] {
        var steps: [StubAnswer.Step] = []
        if let head = exchange.response {
            steps.append(.head(head))
            guard let data = exchange.responseBody.data else { return steps + [.fail(leftOut(exchange, number))] }
            var rest = data[...]
            while !rest.isEmpty {
                steps.append(.bytes(Data(rest.prefix(Self.portionSize))))
                rest = rest.dropFirst(Self.portionSize)
            }
            if !exchange.trailers.isEmpty { steps.append(.trailers(exchange.trailers)) }
        }
        switch exchange.end {
        case .complete: break
        case .failed(let error): steps.append(.fail(error))
        case .cancelled: steps.append(.stall(until: Gate()))
        }
        return steps
    }

    private static func error(_ message: String) -> NetworkError {
        var error = NetworkError(code: .notRecorded, phase: .awaitingResponse, message: message)
        error.isUnsent = false
        return error
    }

    private static let howToRecord =
        "To record again, run the code once with a RecordingSession over a real session, and write its recording to "
        + "the file."

    private func leftOut(_ exchange: RecordedExchange, _ number: Int) -> NetworkError {
        let body = exchange.responseBody
        return Self.error(
            "Exchange \(number + 1) of \(name), \(exchange), cannot be played, because its body of \(body.count) bytes "
                + "was left out. \((body.gap ?? .tooLong).advice)")
    }

    private func refusal(of request: StubRequest, _ key: PlaybackKey) -> NetworkError {
        let subject = "\(request.method) \(redactor.url(request.url))"
        guard let (number, differences) = book.withLock({ $0.nearest(to: key) }) else {
            return Self.error("\(subject) is not recorded: \(name) is empty. \(Self.howToRecord)")
        }
        let nearest = "exchange \(number + 1), \(recording.exchanges[number])"
        guard !differences.isEmpty else {
            return Self.error(
                "\(subject) was requested more often than it is recorded in \(name). "
                    + "The last recorded one is \(nearest). "
                    + Self.howToRecord)
        }
        let list = differences.map(\.rawValue).joined(separator: ", ")
        return Self.error(
            "\(subject) is not recorded in \(name). The most similar one is \(nearest), which differs in: \(list). "
                + Self.howToRecord)
    }
}

extension RecordedExchange {
    /// Returns the key that a request must have to get this exchange.
    func key(_ rules: PlaybackRules) -> PlaybackKey {
        let whole = requestBody.gap == .brokenOff ? nil : requestBody.data
        let body = whole.map { PlaybackKey.body($0) } ?? requestBody.checksum ?? PlaybackKey.anyBody
        return PlaybackKey(method: method, url: url, body: body, headers: requestHeaders, rules)
    }
}

/// An index that assigns recorded exchanges to requests, as a value.
struct PlaybackIndex: Sendable {
    private let keys: [PlaybackKey]
    /// The numbers of the unused exchanges, by their keys.
    private var left: [PlaybackKey: ArraySlice<Int>] = [:]
    private var used: Set<Int> = []

    init(_ keys: [PlaybackKey]) {
        self.keys = keys
        for (number, key) in keys.enumerated() { left[key, default: []].append(number) }
    }

    /// The numbers of the unused exchanges.
    var unused: [Int] { keys.indices.filter { !used.contains($0) } }

    /// Takes the first exchange that matches one of the keys of a request.
    mutating func take(_ forms: [PlaybackKey]) -> Int? {
        let fitting = forms.compactMap { key in left[key]?.first.map { (number: $0, key: key) } }
        guard let first = fitting.min(by: { $0.number < $1.number }) else { return nil }
        left[first.key]?.removeFirst()
        used.insert(first.number)
        return first.number
    }

    /// Returns the exchange that is most similar to an unmatched request, and the differences.
    func nearest(to key: PlaybackKey) -> (number: Int, differences: [PlaybackKey.Part])? {
        let likeness = keys.map { $0.likeness(to: key) }
        // Unused exchanges are preferred.
        let nearest = keys.indices.max { left, right in
            (likeness[left], used.contains(left) ? 0 : 1, right) < (likeness[right], used.contains(right) ? 0 : 1, left)
        }
        return nearest.map { ($0, keys[$0].differences(from: key)) }
    }
}

/// The parts of a request that are compared.
struct PlaybackKey: Hashable, Sendable {
    enum Part: String, CaseIterable {
        case method, host, path, query, body, headers
    }

    /// The key of an unknown or incomplete body, which matches every body.
    static let anyBody = "any"

    private let parts: [String]

    init(method: String, url: String, body: String, headers: HeaderFields, _ rules: PlaybackRules) {
        let mark = url.firstIndex(of: "?") ?? url.endIndex
        let address = url[..<mark]
        let start = address.range(of: "://")?.upperBound ?? address.startIndex
        let slash = address[start...].firstIndex(of: "/") ?? address.endIndex
        let pairs = url[mark...].dropFirst().split(separator: "&", omittingEmptySubsequences: false).filter { pair in
            let name = pair.prefix { $0 != "=" }
            return !rules.ignoredQueryNames.contains(name.removingPercentEncoding ?? String(name))
        }
        let fields = rules.comparedHeaders.map { $0.lowercased() }.sorted().map { name in
            "\(name): \(headers.values(name).joined(separator: ", "))"
        }
        // A recording that was edited or created by an earlier version may contain another spelling of the host.
        let origin = AddressReference(String(address)).origin ?? String(address[..<slash])
        // A request without a path is sent to the path "/".
        let path = slash < address.endIndex ? String(address[slash...]) : "/"
        parts = [
            method, rules.comparesHost ? origin : "", path,
            pairs.joined(separator: "&"), rules.comparesBody ? body : "", fields.joined(separator: "; "),
        ]
    }

    subscript(_ part: Part) -> String { parts[Part.allCases.firstIndex(of: part) ?? 0] }

    /// Returns the parts in which two keys differ.
    func differences(from other: PlaybackKey) -> [Part] {
        Part.allCases.filter { !agrees(with: other, in: $0) }
    }

    /// Returns the similarity of two keys, in which the path has the most weight.
    func likeness(to other: PlaybackKey) -> Int {
        let worth: [Part: Int] = [.path: 8, .method: 4, .host: 2, .query: 2, .body: 1, .headers: 1]
        let same = Part.allCases.filter { agrees(with: other, in: $0) }.reduce(0) { $0 + (worth[$1] ?? 0) }
        // Among different paths, a path with a longer common prefix is preferred.
        return 100 * same + min(zip(self[.path], other[.path]).prefix { $0 == $1 }.count, 99)
    }

    private func agrees(with other: PlaybackKey, in part: Part) -> Bool {
        self[part] == other[part] || part == .body && [self[part], other[part]].contains(Self.anyBody)
    }

    static func body(_ data: Data) -> String { Hexadecimal.sha256(data) }
}

/// A set of rules that determine whether a request matches a recorded exchange.
///
/// By default, a request matches if its method, URL and body are those of the recorded request, apart from secrets.
public struct PlaybackRules: Sendable, Hashable {
    /// A Boolean value that indicates whether a request must have the scheme, the host and the port of the recorded
    /// request.
    ///
    /// The default is `true`. If each test uses a different server, set the property to `false`.
    public var comparesHost = true
    /// The names of the query items that the session ignores when it compares URLs, such as the name of a timestamp or
    /// a random number.
    ///
    /// The default is an empty set.
    public var ignoredQueryNames: Set<String> = []
    /// A Boolean value that indicates whether a request must have the body of the recorded request.
    ///
    /// The default is `true`. If a recorded body is incomplete, or if its file could not be read, every body matches
    /// the recorded body. If a body exceeds the body limit of the recording, the session compares only checksums. A
    /// multipart form of this size matches only if you create the form with a fixed `boundary`, because the default
    /// boundary is random.
    public var comparesBody = true
    /// The names of the headers whose values must be the same in a request and in the recorded request, such as `Range`
    /// or `Accept-Language`.
    ///
    /// The default is an empty set. By default, the recording does not contain secrets, so the session cannot compare
    /// secret values.
    public var comparedHeaders: Set<String> = []

    /// Creates rules that compare the method, the URL and the body.
    public init() {}
}
