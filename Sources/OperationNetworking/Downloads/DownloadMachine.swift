// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Decides what becomes of what a server sends for a file of which a part may be there already.
///
/// One machine serves one download. Each of its requests begins with `ask` and ends with `end`. The bytes of a response
/// are added to a part only if the response names the version of the part. So bytes of two versions can be in one file
/// only if a server gives both versions the same name.
package struct DownloadMachine: Sendable {
    /// What the next request asks for.
    package enum Ask: Hashable, Sendable {
        case whole
        case rest(from: Int64, DownloadValidator)
    }

    /// What is done when the head is there.
    package enum HeadAction: Hashable, Sendable {
        /// The part is emptied and written from its beginning.
        case begin(DownloadMetadata)
        /// The part is cut off there, and written on.
        case goOn(from: Int64, DownloadMetadata)
        /// It was all there; what comes is let go by.
        case alreadyComplete
        /// It is no file: what comes is for whoever looks at responses.
        case leave
        /// The request ends, for another must be made that asks for everything.
        case askAnew
        /// The request ends, and the part is thrown away.
        case fail(NetworkError)
    }

    /// What is done when it is over.
    package enum EndAction: Hashable, Sendable {
        case finish(length: Int64, isLengthKnown: Bool)
        /// There is more to be asked for.
        case askOn
        /// The part is thrown away, and everything begins anew.
        case askAnew
        /// It was no file.
        case left
        case keep(NetworkError)
        case discard(NetworkError)
    }

    private enum State {
        case idle
        case asking(DownloadPart?, Ask)
        case writing(Writing)
        case complete(Int64)
        case left
        case askingAnew
        case failed(NetworkError)
        case refused(NetworkError)
    }

    private struct Writing {
        /// Where this response begins.
        let start: Int64
        var offset: Int64
        /// Where this response ends, if that is known.
        let end: Int64?
        let card: DownloadMetadata
    }

    private let source: String
    private let limits: DownloadLimits
    /// Whether bytes may be asked for from the middle on.
    private let resumes: Bool
    /// Whether a response that is no success may be the file, if it was accepted.
    private let takesEveryStatus: Bool
    private var state = State.idle
    /// How many responses gave a small piece of the file and no error.
    private var smallPieces = 0

    /// A response that gives less is worth little more than the question.
    private static let smallPiece: Int64 = 64 << 10
    /// So many such pieces are taken: how often it is asked is not for the server to say.
    private static let mostSmallPieces = 100

    package init(
        source: String, limits: DownloadLimits = DownloadLimits(), resumes: Bool = true, takesEveryStatus: Bool = false
    ) {
        self.takesEveryStatus = takesEveryStatus
        self.source = source
        self.limits = limits
        self.resumes = resumes
    }

    /// A request is about to be made.
    package mutating func ask(havingPart part: DownloadPart?) -> Ask {
        let (usable, ask) = question(part)
        state = .asking(usable, ask)
        return ask
    }

    private func question(_ part: DownloadPart?) -> (DownloadPart?, Ask) {
        guard resumes, let part, part.card.source == source, let validator = part.card.validator, part.length > 0,
            part.length <= part.card.total ?? .max
        else { return (nil, .whole) }
        // If the part may be complete, its last byte is requested again. Only a response with bytes of the file names
        // its version and its length.
        let mayBeComplete = part.length == part.card.total ?? part.length
        let offset = mayBeComplete ? part.length - 1 : part.length
        return offset > 0 ? (part, .rest(from: offset, validator)) : (nil, .whole)
    }

    /// The head of a response came that is no file: what comes is for whoever looks at responses.
    package mutating func leaveResponse() {
        state = .left
    }

    /// Whether what comes is written.
    package var isWriting: Bool {
        if case .writing = state { true } else { false }
    }

    /// Whether the response is of no use, and another is to be asked for.
    package var isAskingAnew: Bool {
        if case .askingAnew = state { true } else { false }
    }

    /// Whether the present request asks for a part.
    package var asksForRest: Bool {
        if case .asking(_, .rest) = state { true } else { false }
    }

    /// The head of the response came.
    package mutating func receive(_ head: ResponseHead) -> HeadAction {
        guard case .asking(let part, let ask) = state else { return .leave }
        let action: HeadAction
        switch (ask, head.status) {
        case (.rest(let offset, let validator), 206):
            if let part, let writing = writing(part, from: offset, validator, head) {
                state = .writing(writing)
                return checked(.goOn(from: offset, writing.card), total: writing.card.total)
            }
            action = .askAnew
        case (.rest(_, let validator), 416):
            if let part, isComplete(part, validator, head) {
                state = .complete(part.length)
                return checked(.alreadyComplete, total: part.length)
            }
            action = .askAnew
        case (.rest, 412): action = .askAnew
        case (.whole, 206) where resumes:
            return fail(
                NetworkError(
                    code: .invalidResponse, phase: .receiving,
                    message: "The server sent a part of the file, though all of it was asked for."))
        case (_, 204), (_, 205), (_, 304): action = .leave
        case (_, 200...299): return begin(head)
        case _ where takesEveryStatus: return begin(head)
        default: action = .leave
        }
        state = action == .leave ? .left : .askingAnew
        return action
    }

    private mutating func begin(_ head: ResponseHead) -> HeadAction {
        var card = DownloadMetadata(source: source)
        card.total = head.expectedLength
        let isEncoded = head.isDecoded || head.headers.contains("Content-Encoding")
        if resumes, head.status == 200, !isEncoded { card.validator = DownloadValidator(of: head) }
        state = .writing(Writing(start: 0, offset: 0, end: card.total, card: card))
        return checked(.begin(card), total: card.total)
    }

    /// How a part goes on with what the server sends; nil if it does not fit to the last byte.
    private func writing(
        _ part: DownloadPart, from offset: Int64, _ validator: DownloadValidator, _ head: ResponseHead
    ) -> Writing? {
        let fields = head.headers.values("Content-Range")
        guard fields.count == 1, let range = ContentRange(fields[0]), let bytes = range.bytes, let total = range.total,
            bytes.lowerBound == offset, total == part.card.total ?? total, validator.isProven(by: head),
            !head.isDecoded, !head.headers.contains("Content-Encoding"),
            head.expectedLength.map({ $0 - 1 == bytes.upperBound - bytes.lowerBound }) ?? true
        else { return nil }
        var card = part.card
        card.total = total
        return Writing(start: offset, offset: offset, end: bytes.upperBound + 1, card: card)
    }

    private func isComplete(_ part: DownloadPart, _ validator: DownloadValidator, _ head: ResponseHead) -> Bool {
        let fields = head.headers.values("Content-Range")
        guard fields.count == 1, let range = ContentRange(fields[0]), range.bytes == nil else { return false }
        return range.total == part.length && part.length == part.card.total ?? part.length
            && validator.isProven(by: head)
    }

    private mutating func checked(_ action: HeadAction, total: Int64?) -> HeadAction {
        guard let total, let error = limits.error(forTotal: total) else { return action }
        return fail(error)
    }

    private mutating func fail(_ error: NetworkError) -> HeadAction {
        state = .failed(error)
        return .fail(error)
    }

    /// Bytes came: how many of them are written, or why none is and the request ends.
    package mutating func receive(count: Int) -> Result<Int, NetworkError> {
        guard case .writing(var writing) = state else { return .success(0) }
        let (offset, overflows) = writing.offset.addingReportingOverflow(Int64(count))
        writing.offset = offset
        let error =
            overflows || offset > writing.end ?? .max
            ? NetworkError(
                code: .bodyTooLarge, phase: .receiving, message: "The server sent more bytes than it said it would.")
            : limits.error(forReceived: offset)
        if let error {
            state = .failed(error)
            return .failure(error)
        }
        state = .writing(writing)
        return .success(count)
    }

    /// The file could not be written: whatever comes is let go by, and the end is this one.
    package mutating func fail(writing error: NetworkError) {
        state = .failed(error)
    }

    /// The file has no place to go to: whatever comes is let go by, and what is there already stays.
    package mutating func refuse(_ error: NetworkError) {
        state = .refused(error)
    }

    /// The request is over.
    package mutating func end(_ error: NetworkError?) -> EndAction {
        defer { state = .idle }
        switch state {
        case .complete(let length): return .finish(length: length, isLengthKnown: true)
        case .failed(let error): return .discard(error)
        case .refused(let error): return .keep(error)
        case .askingAnew: return .askAnew
        case .left: return error.map { .keep($0) } ?? .left
        case .idle, .asking:
            return .keep(
                error
                    ?? NetworkError(
                        code: .invalidResponse, phase: .receiving, message: "The response ended without a head."))
        case .writing(let writing): return end(writing, error)
        }
    }

    private mutating func end(_ writing: Writing, _ error: NetworkError?) -> EndAction {
        if let error { return writing.card.validator == nil ? .discard(error) : .keep(error) }
        if let end = writing.end, writing.offset < end {
            return .keep(
                NetworkError(
                    code: .truncatedBody, phase: .receiving, message: "The body ended before its stated length."))
        }
        if let total = writing.card.total, writing.offset < total {
            if writing.offset - writing.start < Self.smallPiece { smallPieces += 1 }
            return smallPieces <= Self.mostSmallPieces ? .askOn : .keep(Self.crumbs)
        }
        if let error = limits.error(forTotal: writing.offset) { return .discard(error) }
        return .finish(length: writing.offset, isLengthKnown: writing.card.total != nil)
    }

    private static let crumbs = NetworkError(
        code: .invalidResponse, phase: .receiving,
        message: "The server sends the file in too many small pieces. Remove the part, to ask for all of it at once.")
}

/// What tells one version of a file on a server from every other (RFC 9110, section 8.8).
package enum DownloadValidator: Hashable, Sendable, Codable {
    /// A strong entity tag, quotes included.
    case entityTag(String)
    /// The date of the last change, where it is strong.
    case date(String)

    /// How much older than the response a date must be: within one second a file may change twice.
    ///
    /// A minute, since the clock of the server that answers and that of the one that wrote the file may differ.
    private static let leastAge: TimeInterval = 60

    /// The validator of a response; nil if it has none that would show every change.
    package init?(of head: ResponseHead) {
        if let tag = head.headers["ETag"] {
            // A weak tag says that a change may not show: then the date would not show it either.
            guard Self.isStrong(tag), head.headers.values("ETag").count == 1 else { return nil }
            self = .entityTag(tag)
            return
        }
        guard let text = head.headers["Last-Modified"], head.headers.values("Last-Modified").count == 1,
            let sent = head.headers["Date"].flatMap({ HTTPDate.parse($0, now: Date()) }),
            let changed = HTTPDate.parse(text, now: sent), sent.timeIntervalSince(changed) >= Self.leastAge
        else { return nil }
        self = .date(text)
    }

    /// Whether it is one as responses have them.
    var isSound: Bool {
        switch self {
        case .entityTag(let tag): Self.isStrong(tag)
        case .date(let text): HTTPDate.parse(text, now: Date()) != nil
        }
    }

    /// The value of the `If-Range` field.
    package var field: String {
        switch self {
        case .entityTag(let text), .date(let text): text
        }
    }

    /// Whether a response names this version.
    ///
    /// A server that ignores `If-Range` may send the rest of any version, so a response that names no version proves
    /// nothing. A 206 must name its entity tag (RFC 9110, section 15.3.7). It may leave out the date if the request
    /// named it. The file is then requested again from its beginning.
    package func isProven(by head: ResponseHead) -> Bool {
        switch self {
        case .entityTag(let tag): head.headers.values("ETag") == [tag]
        case .date(let date): head.headers.values("Last-Modified") == [date]
        }
    }

    private static func isStrong(_ tag: String) -> Bool {
        let bytes = Array(tag.utf8)
        guard bytes.count >= 2, bytes.first == 0x22, bytes.last == 0x22 else { return false }
        return bytes[1..<bytes.count - 1].allSatisfy { $0 == 0x21 || (0x23...0x7E).contains($0) || $0 >= 0x80 }
    }
}

/// How long a file must be, or may be.
package struct DownloadLimits: Hashable, Sendable {
    package var expected: Int64?
    package var maximum: Int64?

    package init(expected: Int64? = nil, maximum: Int64? = nil) {
        self.expected = expected
        self.maximum = maximum
    }

    /// What is wrong with a file of that length.
    func error(forTotal total: Int64) -> NetworkError? {
        if let expected, total != expected { return unexpected("The file has \(total) bytes, not \(expected).") }
        return error(forReceived: total)
    }

    /// What is wrong once so many bytes of a file were received.
    func error(forReceived count: Int64) -> NetworkError? {
        if let expected, count > expected {
            return unexpected("The file has more than the expected \(expected) bytes.")
        }
        if let maximum, count > maximum {
            return NetworkError(
                code: .bodyTooLarge, phase: .receiving,
                message: "The file has more than \(maximum) bytes. Raise maximumLength in the options.")
        }
        return nil
    }

    private func unexpected(_ message: String) -> NetworkError {
        NetworkError(code: .unexpectedLength, phase: .receiving, message: message)
    }
}

/// What is known of a part: it lies beside it on the disk, so that somebody can go on.
package struct DownloadMetadata: Hashable, Sendable, Codable {
    /// Of what it is a part: a hash, for URLs have secrets in them.
    package var source: String
    /// Which version; a part without one is never gone on with.
    package var validator: DownloadValidator?
    /// How many bytes the whole has, if that is known.
    package var total: Int64?
    /// The name that the server gave, cleaned.
    package var fileName: String?
    /// So many bytes of the part are on the disk for certain.
    package var synchronized: Int64 = 0
    /// Since when the system runs: all that was written since then is there, synchronized or not.
    package var boot: String?

    package init(source: String) {
        self.source = source
    }

    /// How many bytes of a part of a length can be trusted.
    package func trusted(of length: Int64, boot: String?) -> Int64 {
        let isSameBoot = boot != nil && boot == self.boot
        return min(length, isSameBoot ? length : synchronized)
    }

    /// The card as it is written: a line with the checksum of the rest, and the rest.
    package func text() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let content = Array(try encoder.encode(self))
        return Array((Self.title + Self.checksum(of: content) + "\n").utf8) + content
    }

    /// Reads a card; nil if it is damaged, of another version, or says what no card says.
    package init?(text: [UInt8]) {
        guard let lineEnd = text.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        let content = Array(text[(lineEnd + 1)...])
        guard text[..<lineEnd].elementsEqual((Self.title + Self.checksum(of: content)).utf8),
            let card = try? JSONDecoder().decode(DownloadMetadata.self, from: Data(content)),
            card.synchronized >= 0, card.total ?? 0 >= 0, card.validator?.isSound ?? true
        else { return nil }
        self = card
        // What lies on a disk is trusted with it as little as a server.
        fileName = card.fileName.map { DownloadFileName.cleaned($0) }
    }

    private static let title = "OperationKit download 1 "

    private static func checksum(of content: [UInt8]) -> String {
        Hexadecimal.lower(CRC32.checksum(of: content, startingWith: CRC32()))
    }
}

/// Which part of a file a response has (RFC 9110, section 14.4).
package struct ContentRange: Hashable, Sendable {
    /// The bytes; nil where the server says that it cannot give those that were asked for.
    package let bytes: ClosedRange<Int64>?
    /// How many the file has; nil if the server does not say.
    package let total: Int64?

    /// Reads `bytes 0-499/1234`, `bytes 0-499/*` and `bytes */1234`; nil if it is none of them, or contradicts itself.
    package init?(_ text: String) {
        let words = text.split(separator: " ")
        guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
        let halves = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard halves.count == 2 else { return nil }
        guard halves[1] == "*" || Self.number(halves[1]) != nil else { return nil }
        total = Self.number(halves[1])
        guard halves[0] != "*" else {
            guard total != nil else { return nil }
            bytes = nil
            return
        }
        let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false).map(Self.number)
        guard ends.count == 2, let first = ends[0], let last = ends[1], first <= last, last < total ?? .max else {
            return nil
        }
        bytes = first...last
    }

    private static func number(_ text: some StringProtocol) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy(\.isDigit) else { return nil }
        return Int64(text)
    }
}

/// What is there of a file already.
package struct DownloadPart: Hashable, Sendable {
    /// What is known of it.
    package var card: DownloadMetadata
    /// How many bytes of it can be trusted.
    package var length: Int64

    package init(card: DownloadMetadata, length: Int64) {
        self.card = card
        self.length = length
    }
}
