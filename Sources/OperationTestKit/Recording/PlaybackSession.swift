// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

extension NetworkError.Code {
    /// A ``PlaybackSession`` has no recorded answer to the request.
    public static let notRecorded = Self("notRecorded")
}

/// A session without a network that answers with what a ``RecordingSession`` wrote down, and with nothing else.
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
/// Each exchange answers once, in the order of the recording among those that a request fits; see ``PlaybackRules``.
/// A request that fits none fails with `notRecorded`, and says which one is
/// the nearest and how to record anew. Secrets are left out of requests before they are compared, as they were from
/// the recording.
///
/// An exchange that failed or was cancelled when it was recorded does so again. Of a request's body no more than
/// `bodyLimit` bytes are kept in memory: as many as in the recording, which says so, unless you say another number.
public final class PlaybackSession: NetworkSession {
    private static let portionSize = 1 << 16

    /// What is played.
    public let recording: SessionRecording
    private let name: String
    private let rules: PlaybackRules
    private let redactor: RecordingRedactor
    private let bodyLimit: Int
    private let stub: StubSession
    private let book: Locked<PlaybackIndex>
    private let strangers = EventRecorder<String>()

    /// Makes a session that plays a recording.
    public convenience init(
        _ recording: SessionRecording, rules: PlaybackRules = .standard, bodyLimit: Int? = nil
    ) {
        self.init(recording, "the recording", rules, bodyLimit)
    }

    /// Makes a session that plays the recording in a file.
    public convenience init(
        contentsOf file: URL, rules: PlaybackRules = .standard, bodyLimit: Int? = nil
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

    /// The exchanges that answered no request so far.
    public var unusedExchanges: [RecordedExchange] {
        book.withLock { $0.unused }.map { recording.exchanges[$0] }
    }

    /// The requests that were not answered, because they were not recorded.
    public var unmatchedRequests: [String] { strangers.events }

    /// Expects that each exchange answered a request, and that no request was left without an answer.
    public func expectAllUsed(fileID: String = #fileID, line: Int = #line) throws(UnmetExpectation) {
        let (unused, strangers) = (unusedExchanges, unmatchedRequests)
        guard !unused.isEmpty || !strangers.isEmpty else { return }
        throw UnmetExpectation(
            "\(name) was not played as it was recorded",
            expected: "all of its \(recording.exchanges.count) exchanges, and no other request",
            found: "\(unused.count) that were not asked for, \(strangers.count) requests that were not recorded",
            details: unused.map { "not asked for: \($0)" } + strangers.map { "not recorded: \($0)" }, fileID: fileID,
            line: line)
    }

    /// Makes a task that waits for its first `resume()`.
    public func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        stub.makeTask(with: request, receiver: receiver)
    }

    /// Ends all tasks with `sessionClosed`, and those that are resumed later, too.
    public func close() { stub.close() }

    private func answer(to request: StubRequest) -> StubAnswer {
        let keys = keys(of: request)
        if let number = book.withLock({ $0.take(keys) }) {
            return StubAnswer(steps: steps(of: recording.exchanges[number], number))
        }
        strangers.record("\(request.method) \(redactor.url(request.url))")
        return StubAnswer(.fail(refusal(of: request, keys[0])))
    }

    /// The request as it is compared: without its secrets, or where it could not be looked into, as it is.
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
        "To record anew, run the code once with a RecordingSession over a real session, and write its recording to the file."

    private func leftOut(_ exchange: RecordedExchange, _ number: Int) -> NetworkError {
        let body = exchange.responseBody
        return Self.error(
            "Exchange \(number + 1) of \(name), \(exchange), cannot be played: its body of "
                + "\(body.count) bytes was left out. \((body.gap ?? .tooLong).advice)")
    }

    private func refusal(of request: StubRequest, _ key: PlaybackKey) -> NetworkError {
        let subject = "\(request.method) \(redactor.url(request.url))"
        guard let (number, differences) = book.withLock({ $0.nearest(to: key) }) else {
            return Self.error("\(subject) is not recorded: \(name) is empty. \(Self.howToRecord)")
        }
        let nearest = "exchange \(number + 1), \(recording.exchanges[number])"
        guard !differences.isEmpty else {
            return Self.error(
                "\(subject) was asked for more often than it is recorded in \(name): the last of them is \(nearest). "
                    + Self.howToRecord)
        }
        let list = differences.map(\.rawValue).joined(separator: ", ")
        return Self.error(
            "\(subject) is not recorded in \(name). The nearest is \(nearest), which differs in: \(list). "
                + Self.howToRecord)
    }
}

extension RecordedExchange {
    /// What a request must be like to be answered by it.
    func key(_ rules: PlaybackRules) -> PlaybackKey {
        let whole = requestBody.gap == .brokenOff ? nil : requestBody.data
        let body = whole.map { PlaybackKey.body($0) } ?? requestBody.checksum ?? PlaybackKey.anyBody
        return PlaybackKey(method: method, url: url, body: body, headers: requestHeaders, rules)
    }
}

/// Which recorded exchange answers which request: a pure value.
struct PlaybackIndex: Sendable {
    private let keys: [PlaybackKey]
    /// The numbers of those that were not used yet, by what they answer.
    private var left: [PlaybackKey: ArraySlice<Int>] = [:]
    private var used: Set<Int> = []

    init(_ keys: [PlaybackKey]) {
        self.keys = keys
        for (number, key) in keys.enumerated() { left[key, default: []].append(number) }
    }

    /// Those that were not used yet.
    var unused: [Int] { keys.indices.filter { !used.contains($0) } }

    /// Takes the first exchange that answers one of these forms of a request.
    mutating func take(_ forms: [PlaybackKey]) -> Int? {
        let fitting = forms.compactMap { key in left[key]?.first.map { (number: $0, key: key) } }
        guard let first = fitting.min(by: { $0.number < $1.number }) else { return nil }
        left[first.key]?.removeFirst()
        used.insert(first.number)
        return first.number
    }

    /// The exchange that is most like a request which none answers, and in what it differs.
    func nearest(to key: PlaybackKey) -> (number: Int, differences: [PlaybackKey.Part])? {
        let likeness = keys.map { $0.likeness(to: key) }
        // Rather one that is left over than one that was used.
        let nearest = keys.indices.max { left, right in
            (likeness[left], used.contains(left) ? 0 : 1, right) < (likeness[right], used.contains(right) ? 0 : 1, left)
        }
        return nearest.map { ($0, keys[$0].differences(from: key)) }
    }
}

/// What is compared of a request, part by part.
struct PlaybackKey: Hashable, Sendable {
    enum Part: String, CaseIterable {
        case method, host, path, query, body
        case headers = "header fields"
    }

    /// In the place of a body that is not known whole: it fits all.
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
        // A recording that was edited or made by an earlier version may spell the host differently.
        let origin = AddressReference(String(address)).origin ?? String(address[..<slash])
        parts = [
            method, rules.comparesHost ? origin : "", String(address[slash...]),
            pairs.joined(separator: "&"), rules.comparesBody ? body : "", fields.joined(separator: "; "),
        ]
    }

    subscript(_ part: Part) -> String { parts[Part.allCases.firstIndex(of: part) ?? 0] }

    /// In which parts they differ.
    func differences(from other: PlaybackKey) -> [Part] {
        Part.allCases.filter { !agrees(with: other, in: $0) }
    }

    /// How much they have in common: the path counts most.
    func likeness(to other: PlaybackKey) -> Int {
        let worth: [Part: Int] = [.path: 8, .method: 4, .host: 2, .query: 2, .body: 1, .headers: 1]
        let same = Part.allCases.filter { agrees(with: other, in: $0) }.reduce(0) { $0 + (worth[$1] ?? 0) }
        // Of two other paths, the one that begins in the same way.
        return 100 * same + min(zip(self[.path], other[.path]).prefix { $0 == $1 }.count, 99)
    }

    private func agrees(with other: PlaybackKey, in part: Part) -> Bool {
        self[part] == other[part] || part == .body && [self[part], other[part]].contains(Self.anyBody)
    }

    static func body(_ data: Data) -> String { SHA256.checksum(of: data, startingWith: SHA256()).hexadecimal }
}

/// What a request must have in common with a recorded one to get its answer.
///
/// From the start that is the method, the whole URL and the body, each without its secrets. Of several recorded
/// exchanges that fit, the first that was not used yet is taken.
public struct PlaybackRules: Sendable, Hashable {
    /// Whether scheme, host and port must be the same; not for a server of which each test has its own.
    public var comparesHost = true
    /// Names in the query that may differ or be missing: a time, a number that is drawn.
    public var ignoredQueryNames: Set<String> = []
    /// Whether the body must be the same.
    ///
    /// A form in several parts that is longer than what a recording keeps never is: its boundary is another each
    /// time. One that was not sent to its end when it was recorded, or of which the file could not be read, fits any.
    public var comparesBody = true
    /// Header fields that must be the same, such as `Range` or `Accept-Language`; a secret one cannot be compared.
    public var comparedHeaders: Set<String> = []

    /// Method, URL and body.
    public static let standard = PlaybackRules()

    /// Makes the rules that hold if nothing is said.
    public init() {}
}
