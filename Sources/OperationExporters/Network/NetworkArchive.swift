// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// Keeps requests and responses as an HTTP archive (HAR 1.2), which the developer tools of browsers open.
///
/// ```swift
/// func keep(_ shop: inout NetworkBase) throws {
///     let archive = NetworkArchive()
///     shop.observers.append(archive)
///     // … run operations of the shop …
///     try archive.har().write(to: URL(fileURLWithPath: "/tmp/shop.har"))
/// }
/// ```
///
/// Each request that a session sent is an entry: each attempt, and each redirect and challenge within it, as far as the
/// session tells of them. An answer of the cache is one, too. What is left out by the redaction is never written, and not
/// kept in memory, either, when the attempt is over.
public final class NetworkArchive: NetworkObserver {
    /// How much an archive keeps.
    public struct Options: Sendable {
        /// How many entries are kept at most: the oldest give way.
        public var limit = 1_000
        /// Whether bodies are kept, as far as they were in memory.
        public var keepsBodies = false
        /// How many bytes of a body are kept at most.
        public var bodyBytes = 64 << 10
        /// How many bytes of all bodies are kept at most: the oldest entries give way, and the bodies of one request that
        /// are more by themselves are left out.
        public var totalBodyBytes = 16 << 20
        /// What is left out: the usual secrets.
        ///
        /// As long as secrets are left out, values of queries and cookies are, and bodies that are neither JSON nor a form.
        public var redaction = LogRedaction.secrets

        /// Makes the stated options.
        public init() {}
    }

    private struct State {
        /// The requests of attempts that have not ended.
        var open: [UInt64: [ArchivedExchange]] = [:]
        var entries = Fifo<ArchiveEntry>()
        var bodyBytes = 0
        var forgottenCount = 0
    }

    private let options: Options
    private let state = Locked(State())

    /// Makes an empty archive.
    public init(_ options: Options = Options()) { self.options = options }

    /// How many entries are kept.
    public var count: Int { state.withLock { $0.entries.count } }

    /// How many entries gave way to others, since the archive was emptied last.
    public var forgottenCount: Int { state.withLock { $0.forgottenCount } }

    /// Notes an event.
    public func observe(_ event: NetworkEvent) {
        switch event.kind {
        case .sending:
            // Until the session tells more, it stands for all requests of the attempt.
            let exchange = ArchivedExchange(event, options)
            state.withLock { $0.open[event.operationID] = [exchange] }
        case .hopBegan: begin(ArchivedExchange(event, options), isFirst: event.hop == 1)
        case .bodySent, .leftBehind, .responded, .hopEnded:
            let isOver = state.withLock { state in
                guard let last = state.open[event.operationID]?.indices.last else { return false }
                if state.open[event.operationID]?[last].ended != nil { return true }
                state.open[event.operationID]?[last].note(event)
                return false
            }
            guard isOver, event.kind == .responded else { return }
            // The requests are over, and here is an answer.
            var exchange = ArchivedExchange(event, options, isFromCache: true)
            exchange.note(event)
            begin(exchange, isFirst: false)
        case .attemptEnded: end(event)
        default: break
        }
    }

    private func begin(_ exchange: ArchivedExchange, isFirst: Bool) {
        state.withLock { state in
            var open = isFirst ? [] : state.open[exchange.operationID] ?? []
            open.append(exchange)
            if open.count > max(options.limit, 1) {
                open.removeFirst()
                state.forgottenCount += 1
            }
            state.open[exchange.operationID] = open
        }
    }

    private func end(_ event: NetworkEvent) {
        guard var exchanges = state.withLock({ $0.open.removeValue(forKey: event.operationID) }),
            event.ending != .takenBack, let last = exchanges.indices.last
        else { return }
        exchanges[last].end(event)
        let most = max(options.totalBodyBytes, 0)
        let entries = exchanges.map { exchange in
            let entry = ArchiveEntry(exchange, options)
            // Whatever it pushed out, there would be no room for it.
            return entry.bodyBytes > most ? entry.withoutBodies : entry
        }
        state.withLock { state in
            for entry in entries {
                state.entries.append(entry)
                state.bodyBytes += entry.bodyBytes
            }
            while state.entries.count > max(options.limit, 0) || state.bodyBytes > most && !state.entries.isEmpty {
                guard let oldest = state.entries.popFirst() else { break }
                state.bodyBytes -= oldest.bodyBytes
                state.forgottenCount += 1
            }
        }
    }

    /// The archive as a file: JSON in UTF-8.
    public func har() throws -> Data {
        let (entries, forgotten) = state.withLock { ($0.entries, $0.forgottenCount) }
        return try Self.har(entries, forgotten)
    }

    /// The archive as a file, and from then on empty: for whoever writes one every minute.
    ///
    /// What is not in it is in the next one, and nothing is in two. Requests of attempts that have not ended come later.
    public func takeHAR() throws -> Data {
        let (entries, forgotten) = takeEntries()
        return try Self.har(entries, forgotten)
    }

    /// Forgets all entries; requests of attempts that have not ended are still to come.
    public func removeAll() { _ = takeEntries() }

    private func takeEntries() -> (entries: Fifo<ArchiveEntry>, forgotten: Int) {
        state.withLock { state in
            state.bodyBytes = 0
            return (exchange(&state.entries, with: Fifo()), exchange(&state.forgottenCount, with: 0))
        }
    }

    private static func har(_ kept: Fifo<ArchiveEntry>, _ forgotten: Int) throws -> Data {
        var (entries, list) = (kept, [ArchiveEntry]())
        while let entry = entries.popFirst() { list.append(entry) }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let comment = forgotten > 0 ? "\(forgotten) entries before these are not kept." : nil
        let log = ArchiveLog(entries: list.sorted { $0.startedDateTime < $1.startedDateTime }, comment: comment)
        return try encoder.encode(["log": log])
    }
}

// The names are those of the format, HAR 1.2.

/// The whole of an archive.
struct ArchiveLog: Codable {
    struct Creator: Codable {
        var name = "OperationKit"
        var version = "1.0"
    }

    var version = "1.2"
    var creator = Creator()
    /// There are none, and readers expect the list.
    var pages: [String] = []
    var entries: [ArchiveEntry]
    var comment: String?
}

/// One request and its response.
struct ArchiveEntry: Codable, Sendable {
    struct Pair: Codable, Sendable {
        let name: String
        let value: String
    }

    struct Cookie: Codable, Sendable {
        let name: String
        let value: String
        var path: String?
        var domain: String?
        var expires: String?
        var httpOnly: Bool?
        var secure: Bool?
    }

    struct PostData: Codable, Sendable {
        let mimeType: String
        /// The fields of a form, in the place of a text.
        var params: [Pair]?
        var text: String?
        var comment: String?

        var bytes: Int {
            (text?.utf8.count ?? 0) + (params ?? []).reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
        }
    }

    struct Request: Codable, Sendable {
        let method: String
        let url: String
        private(set) var httpVersion: String
        let cookies: [Cookie]
        let headers: [Pair]
        let queryString: [Pair]
        var postData: PostData?
        let headersSize: Int64
        let bodySize: Int64

        func sent(as version: String) -> Request {
            var request = self
            request.httpVersion = version
            return request
        }
    }

    struct Content: Codable, Sendable {
        let size: Int64
        var compression: Int64?
        let mimeType: String
        var text: String?
        var encoding: String?
        var comment: String?
    }

    struct Response: Codable, Sendable {
        let status: Int
        let statusText: String
        let httpVersion: String
        let cookies: [Cookie]
        let headers: [Pair]
        var content: Content
        let redirectURL: String
        let headersSize: Int64
        let bodySize: Int64
        /// What other writers of archives say of a request that got no response.
        var _error: String?
    }

    struct Cache: Codable, Sendable {}

    let startedDateTime: String
    let time: Double
    var request: Request
    var response: Response
    var cache = Cache()
    let timings: ArchiveTimings
    let serverIPAddress: String?
    let comment: String?

    /// How many bytes its bodies take.
    var bodyBytes: Int { (request.postData?.bytes ?? 0) + (response.content.text?.utf8.count ?? 0) }

    /// The same without its bodies, which are too large.
    var withoutBodies: ArchiveEntry {
        var entry = self
        let comment = "left out: larger than all that is kept of bodies"
        if let data = request.postData, data.bytes > 0 {
            entry.request.postData = PostData(mimeType: data.mimeType, text: "", comment: comment)
        }
        if response.content.text != nil {
            (entry.response.content.text, entry.response.content.encoding) = (nil, nil)
            entry.response.content.comment = comment
        }
        return entry
    }
}
