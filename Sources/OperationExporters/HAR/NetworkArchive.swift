// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// An observer that records requests and responses as an HTTP archive (HAR 1.2), which browser developer tools can
/// open.
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
/// The archive contains an entry for each attempt of an operation and for each response from the cache. If the session
/// reports redirects and challenges, each request that follows a redirect or a challenge also has an entry. When an
/// attempt ends, the archive hides the information that ``Options/redaction`` specifies, and then adds the entries of
/// the attempt.
public final class NetworkArchive: NetworkObserver {
    /// A set of options that determine what an archive keeps.
    public struct Options: Sendable {
        /// The maximum number of entries in the archive.
        ///
        /// The default is 1,000. Beyond this limit, the archive removes the oldest entries.
        public var limit = 1_000
        /// A Boolean value that indicates whether the archive keeps the bodies of requests and responses that are in
        /// memory.
        ///
        /// The default is `false`.
        public var keepsBodies = false
        /// The maximum number of bytes of each body that the archive keeps.
        ///
        /// The default is 64 KiB.
        public var bodyBytes = 64 << 10
        /// The maximum total number of bytes in all bodies that the archive keeps.
        ///
        /// The default is 16 MiB. Beyond this limit, the archive removes the oldest entries. If the bodies of a single
        /// entry exceed the limit, the archive omits these bodies.
        package var totalBodyBytes = 16 << 20
        /// The information that the archive hides.
        ///
        /// The default is `LogRedaction.secrets`. Unless you use `LogRedaction.none`, the archive also hides query
        /// values and cookie values, and omits all bodies except JSON and request forms.
        public var redaction = LogRedaction.secrets

        /// Creates options with the default values.
        public init() {}
    }

    private struct State {
        /// The exchanges of attempts that have not ended.
        var open: [UInt64: [ArchivedExchange]] = [:]
        var entries = Fifo<ArchiveEntry>()
        var bodyBytes = 0
        var forgottenCount = 0
    }

    private let options: Options
    private let state = Locked(State())

    /// Creates an empty archive.
    ///
    /// - Parameter options: The options of the archive. The default is the default value of each option.
    public init(_ options: Options = Options()) { self.options = options }

    /// The number of entries in the archive.
    package var count: Int { state.withLock { $0.entries.count } }

    /// The number of entries that the archive has removed because of a limit since you last emptied the archive.
    package var forgottenCount: Int { state.withLock { $0.forgottenCount } }

    /// Records an event of a network operation.
    public func observe(_ event: NetworkEvent) {
        switch event.kind {
        case .sending:
            // Until the session reports its requests, this exchange represents all requests of the attempt.
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
            // The requests have ended, so this response comes from the cache.
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
            // The bodies exceed the limit even without other entries.
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

    /// Returns the archive as JSON in UTF-8.
    ///
    /// If the archive has removed entries because of a limit, the JSON states their number.
    ///
    /// - Throws: An error from the JSON encoder.
    public func har() throws -> Data {
        let (entries, forgotten) = state.withLock { ($0.entries, $0.forgottenCount) }
        return try Self.har(entries, forgotten)
    }

    /// Returns the archive as JSON in UTF-8 and removes its entries.
    ///
    /// To keep the entries of each period in a separate file, call this method at regular intervals, for example every
    /// minute, and write the returned data to a new file. The archive adds the entries of an attempt when the attempt
    /// ends.
    ///
    /// - Throws: An error from the JSON encoder.
    public func takeHAR() throws -> Data {
        let (entries, forgotten) = state.withLock { state in
            state.bodyBytes = 0
            return (exchange(&state.entries, with: Fifo()), exchange(&state.forgottenCount, with: 0))
        }
        return try Self.har(entries, forgotten)
    }

    private static func har(_ kept: Fifo<ArchiveEntry>, _ forgotten: Int) throws -> Data {
        var (entries, list) = (kept, [ArchiveEntry]())
        while let entry = entries.popFirst() { list.append(entry) }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let comment = forgotten > 0 ? "\(forgotten) earlier entries were not kept." : nil
        let log = ArchiveLog(entries: list.sorted { $0.startedDateTime < $1.startedDateTime }, comment: comment)
        return try encoder.encode(["log": log])
    }
}

// The names are defined by the format, HAR 1.2.

/// The content of an archive.
struct ArchiveLog: Codable {
    struct Creator: Codable {
        var name = "OperationKit"
        var version = "1.0"
    }

    var version = "1.2"
    var creator = Creator()
    /// The list is empty, but viewers expect it.
    var pages: [String] = []
    var entries: [ArchiveEntry]
    var comment: String?
}

/// A request and its response.
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
        /// The fields of a form, which replace the text.
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
        /// The error of a request without a response, as other tools write it.
        var _error: String?
    }

    let startedDateTime: String
    let time: Double
    var request: Request
    var response: Response
    /// An empty object, which the format requires, because the archive contains no details about the cache.
    var cache: [String: String] = [:]
    let timings: ArchiveTimings
    let serverIPAddress: String?
    let comment: String?

    /// The number of bytes of the entry's bodies.
    var bodyBytes: Int { (request.postData?.bytes ?? 0) + (response.content.text?.utf8.count ?? 0) }

    /// The entry without its bodies, which are too large.
    var withoutBodies: ArchiveEntry {
        var entry = self
        let comment = "left out: larger than the limit for all bodies"
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
