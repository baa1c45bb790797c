// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A state machine that decides how to use the responses for a file of which a part may already exist.
///
/// One machine serves one download. Each of its requests begins with `ask` and ends with `end`. The bytes of a response
/// are added to a partial file only if the response names the version of that file. So one file can contain bytes of
/// two versions only if a server gives both versions the same name.
package struct DownloadMachine: Sendable {
    /// The range to request.
    package enum Ask: Hashable, Sendable {
        case whole
        case rest(from: Int64, DownloadValidator)
    }

    /// The action after the headers of a response.
    package enum HeadAction: Hashable, Sendable {
        /// Empty the partial file and write it from its beginning.
        case begin(DownloadMetadata)
        /// Truncate the partial file at the offset and append to it.
        case resume(from: Int64, DownloadMetadata)
        /// The partial file is complete, so ignore the body.
        case alreadyComplete
        /// The response is not the file, so pass it to the caller.
        case leave
        /// End the request and request the whole file.
        case askFromStart
        /// End the request and discard the partial file.
        case fail(NetworkError)
    }

    /// The action at the end of a request.
    package enum EndAction: Hashable, Sendable {
        case finish(length: Int64, isLengthKnown: Bool)
        /// Request the next part.
        case askForRest
        /// Discard the partial file and start from scratch.
        case askFromStart
        /// The response was not the file.
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
        case askingFromStart
        case failed(NetworkError)
        case refused(NetworkError)
    }

    private struct Writing {
        /// The offset at which this response begins.
        let start: Int64
        var offset: Int64
        /// The offset at which this response ends, if it is known.
        let end: Int64?
        let metadata: DownloadMetadata
    }

    private let source: String
    /// The options, with the expected and the maximum length of the file.
    private let options: DownloadOptions
    /// Whether requests may ask for a range that begins in the middle.
    private let resumes: Bool
    /// Whether an accepted response can be the file even if its status code is not a success.
    private let takesEveryStatus: Bool
    private var state = State.idle
    /// Whether the next request asks for the whole file, even if the partial file could not be removed.
    private var startsOver = false
    /// The number of responses that contained only a small part of the file.
    private var smallPieces = 0

    /// The size below which a part does not justify a request.
    private static let smallPiece: Int64 = 64 << 10
    /// The maximum number of small parts, so that a server cannot cause any number of requests.
    private static let mostSmallPieces = 100

    package init(
        source: String, options: DownloadOptions = DownloadOptions(), resumes: Bool = true,
        takesEveryStatus: Bool = false
    ) {
        self.takesEveryStatus = takesEveryStatus
        self.source = source
        self.options = options
        self.resumes = resumes
    }

    /// Begins a request, and returns the range to request.
    package mutating func ask(havingPart part: DownloadPart?) -> Ask {
        let (usable, ask) = question(part)
        state = .asking(usable, ask)
        return ask
    }

    private func question(_ part: DownloadPart?) -> (DownloadPart?, Ask) {
        guard resumes, !startsOver, let part, part.metadata.source == source, let validator = part.metadata.validator,
            part.length > 0,
            part.length <= part.metadata.total ?? .max
        else { return (nil, .whole) }
        // If the part may be complete, its last byte is requested again. Only a response with bytes of the file names
        // its version and its length.
        let mayBeComplete = part.length == part.metadata.total ?? part.length
        let offset = mayBeComplete ? part.length - 1 : part.length
        return offset > 0 ? (part, .rest(from: offset, validator)) : (nil, .whole)
    }

    /// Records that the response is not the file, so that its body is passed to the caller.
    package mutating func leaveResponse() {
        state = .left
    }

    /// Whether the response is the file, even if it cannot be saved now.
    package var hasFile: Bool {
        if case .writing = state { true } else if case .refused = state { true } else { false }
    }

    /// Whether the response is unusable and another request must be sent.
    package var isAskingFromStart: Bool {
        if case .askingFromStart = state { true } else { false }
    }

    /// Whether the current request asks for a range.
    package var asksForRest: Bool {
        if case .asking(_, .rest) = state { true } else { false }
    }

    /// Processes the headers of the response.
    package mutating func receive(_ head: ResponseHead) -> HeadAction {
        guard case .asking(let part, let ask) = state else { return .leave }
        let action: HeadAction
        switch (ask, head.status) {
        case (.rest(let offset, let validator), 206):
            if let part, let writing = writing(part, from: offset, validator, head) {
                state = .writing(writing)
                return checked(.resume(from: offset, writing.metadata), total: writing.metadata.total)
            }
            action = .askFromStart
        case (.rest(_, let validator), 416):
            if let part, isComplete(part, validator, head) {
                state = .complete(part.length)
                return checked(.alreadyComplete, total: part.length)
            }
            action = .askFromStart
        case (.rest, 412): action = .askFromStart
        case (.whole, 206) where resumes:
            return fail(
                NetworkError(
                    code: .invalidResponse, phase: .receiving,
                    message: "The server sent a part of the file instead of the whole file."))
        case (_, 204), (_, 205), (_, 304): action = .leave
        case (_, 200...299): return begin(head)
        case _ where takesEveryStatus: return begin(head)
        default: action = .leave
        }
        state = action == .leave ? .left : .askingFromStart
        return action
    }

    private mutating func begin(_ head: ResponseHead) -> HeadAction {
        startsOver = false
        var metadata = DownloadMetadata(source: source)
        metadata.total = head.expectedLength
        let isEncoded = head.isDecoded || head.headers.contains("Content-Encoding")
        if resumes, head.status == 200, !isEncoded { metadata.validator = DownloadValidator(of: head) }
        state = .writing(Writing(start: 0, offset: 0, end: metadata.total, metadata: metadata))
        return checked(.begin(metadata), total: metadata.total)
    }

    /// Returns how a response continues a partial file, or `nil` if it does not fit exactly.
    private func writing(
        _ part: DownloadPart, from offset: Int64, _ validator: DownloadValidator, _ head: ResponseHead
    ) -> Writing? {
        let fields = head.headers.values("Content-Range")
        guard fields.count == 1, let range = ContentRange(fields[0]), let bytes = range.bytes, let total = range.total,
            bytes.lowerBound == offset, total == part.metadata.total ?? total, validator.isProven(by: head),
            !head.isDecoded, !head.headers.contains("Content-Encoding"),
            head.expectedLength.map({ $0 - 1 == bytes.upperBound - bytes.lowerBound }) ?? true
        else { return nil }
        var metadata = part.metadata
        metadata.total = total
        return Writing(start: offset, offset: offset, end: bytes.upperBound + 1, metadata: metadata)
    }

    private func isComplete(_ part: DownloadPart, _ validator: DownloadValidator, _ head: ResponseHead) -> Bool {
        let fields = head.headers.values("Content-Range")
        guard fields.count == 1, let range = ContentRange(fields[0]), range.bytes == nil else { return false }
        return range.total == part.length && part.length == part.metadata.total ?? part.length
            && validator.isProven(by: head)
    }

    private mutating func checked(_ action: HeadAction, total: Int64?) -> HeadAction {
        guard let total, let error = options.error(forTotal: total) else { return action }
        return fail(error)
    }

    private mutating func fail(_ error: NetworkError) -> HeadAction {
        state = .failed(error)
        return .fail(error)
    }

    /// Returns the number of received bytes to write, or the error that ends the request.
    package mutating func receive(count: Int) -> Result<Int, NetworkError> {
        guard case .writing(var writing) = state else { return .success(0) }
        let (offset, overflows) = writing.offset.addingReportingOverflow(Int64(count))
        writing.offset = offset
        let error =
            overflows || offset > writing.end ?? .max
            ? NetworkError(
                code: .bodyTooLarge, phase: .receiving, message: "The server sent more bytes than it announced.")
            : options.error(forReceived: offset)
        if let error {
            state = .failed(error)
            return .failure(error)
        }
        state = .writing(writing)
        return .success(count)
    }

    /// Records that the file cannot be written.
    ///
    /// Further bytes are ignored, and the request ends with this error.
    package mutating func fail(writing error: NetworkError) {
        state = .failed(error)
    }

    /// Records that the file cannot be saved now, although the partial file is valid.
    ///
    /// Further bytes are ignored, and the partial file is kept.
    package mutating func refuse(_ error: NetworkError) {
        state = .refused(error)
    }

    /// Processes the end of the request.
    package mutating func end(_ error: NetworkError?) -> EndAction {
        defer { state = .idle }
        switch state {
        case .complete(let length): return .finish(length: length, isLengthKnown: true)
        case .failed(let error): return .discard(error)
        case .refused(let error): return .keep(error)
        case .askingFromStart:
            startsOver = true
            return .askFromStart
        case .left: return error.map { .keep($0) } ?? .left
        case .idle, .asking:
            return .keep(
                error
                    ?? NetworkError(
                        code: .invalidResponse, phase: .receiving, message: "The response ended without headers."))
        case .writing(let writing): return end(writing, error)
        }
    }

    private mutating func end(_ writing: Writing, _ error: NetworkError?) -> EndAction {
        if let error { return writing.metadata.validator == nil ? .discard(error) : .keep(error) }
        if let end = writing.end, writing.offset < end {
            return .keep(
                NetworkError(
                    code: .truncatedBody, phase: .receiving, message: "The body ended before its stated length."))
        }
        if let total = writing.metadata.total, writing.offset < total {
            if writing.offset - writing.start < Self.smallPiece { smallPieces += 1 }
            return smallPieces <= Self.mostSmallPieces ? .askForRest : .keep(Self.tooManySmallPieces)
        }
        if let error = options.error(forTotal: writing.offset) { return .discard(error) }
        return .finish(length: writing.offset, isLengthKnown: writing.metadata.total != nil)
    }

    private static let tooManySmallPieces = NetworkError(
        code: .invalidResponse, phase: .receiving,
        message:
            "The server sends the file in too many small parts. Remove the received part to request the whole file.")
}

/// A validator that distinguishes the versions of a file on a server (RFC 9110, section 8.8).
package enum DownloadValidator: Hashable, Sendable, Codable {
    /// A strong entity tag, including its quotation marks.
    case entityTag(String)
    /// The date of the last modification, if it is a strong validator.
    case date(String)

    /// The minimum age of a modification date, because a file may change twice within one second.
    ///
    /// The age is one minute, because the clocks of the server and of the computer that wrote the file may differ.
    private static let leastAge: TimeInterval = 60

    /// Creates the validator of a response, or returns `nil` if the response has none that reveals every change.
    package init?(of head: ResponseHead) {
        if let tag = head.headers["ETag"] {
            // If a weak tag does not reveal a change, the date does not reveal it either.
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

    /// Whether the validator has the form in which servers send it.
    var isSound: Bool {
        switch self {
        case .entityTag(let tag): Self.isStrong(tag)
        case .date(let text): HTTPDate.parse(text, now: Date()) != nil
        }
    }

    /// The value of the `If-Range` header.
    package var field: String {
        switch self {
        case .entityTag(let text), .date(let text): text
        }
    }

    /// Returns whether a response names this version.
    ///
    /// A server that ignores `If-Range` may send the rest of any version, so a response without a version proves
    /// nothing. A 206 response must contain its entity tag (RFC 9110, section 15.3.7). The response may omit the date
    /// if the request contained it. In this case, the file is requested again from its beginning.
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

extension DownloadOptions {
    /// Returns the error for a file with the given length, or `nil` if the length is allowed.
    fileprivate func error(forTotal total: Int64) -> NetworkError? {
        if let expected = expectedLength, total != expected {
            return unexpected("The file has \(total) bytes instead of the expected \(expected) bytes.")
        }
        return error(forReceived: total)
    }

    /// Returns the error after the given number of bytes was received, or `nil` if the number is allowed.
    fileprivate func error(forReceived count: Int64) -> NetworkError? {
        if let expected = expectedLength, count > expected {
            return unexpected("The file has more than the expected \(expected) bytes.")
        }
        if let maximum = maximumLength, count > maximum {
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

/// The metadata of a partial file, which is stored beside it so that a later download can resume.
package struct DownloadMetadata: Hashable, Sendable, Codable {
    /// The hash of the URL or the key, because URLs can contain secrets.
    package var source: String
    /// The version of the file, without which the download is never resumed.
    package var validator: DownloadValidator?
    /// The length of the whole file, if it is known.
    package var total: Int64?
    /// The cleaned name from the server.
    package var fileName: String?
    /// The number of bytes of the partial file that were flushed to disk.
    package var synchronized: Int64 = 0
    /// The boot session of the system, in which all written bytes are valid even if they were not flushed.
    package var boot: String?

    package init(source: String) {
        self.source = source
    }

    /// Returns the number of trusted bytes in a partial file of the given length.
    package func trusted(of length: Int64, boot: String?) -> Int64 {
        let isSameBoot = boot != nil && boot == self.boot
        return min(length, isSameBoot ? length : synchronized)
    }

    /// Returns the content of the metadata file, whose first line contains the checksum of the rest.
    package func text() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let content = Array(try encoder.encode(self))
        return Array((Self.title + Self.checksum(of: content) + "\n").utf8) + content
    }

    /// Reads the content of a metadata file, or returns `nil` if it is damaged, invalid or of another version.
    package init?(text: [UInt8]) {
        guard let lineEnd = text.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        let content = Array(text[(lineEnd + 1)...])
        guard text[..<lineEnd].elementsEqual((Self.title + Self.checksum(of: content)).utf8),
            let metadata = try? JSONDecoder().decode(DownloadMetadata.self, from: Data(content)),
            metadata.synchronized >= 0, metadata.total ?? 0 >= 0, metadata.validator?.isSound ?? true
        else { return nil }
        self = metadata
        // A name on disk is no more trustworthy than a name from a server.
        fileName = metadata.fileName.map { DownloadFileName.cleaned($0) }
    }

    private static let title = "OperationKit download 1 "

    private static func checksum(of content: [UInt8]) -> String {
        Hexadecimal.lower(CRC32.checksum(of: content, startingWith: CRC32()))
    }
}

/// The range of a file that a response contains (RFC 9110, section 14.4).
package struct ContentRange: Hashable, Sendable {
    /// The range, or `nil` if the server cannot provide the requested range.
    package let bytes: ClosedRange<Int64>?
    /// The length of the whole file, or `nil` if the server does not state it.
    package let total: Int64?

    /// Reads `bytes 0-499/1234`, `bytes 0-499/*` or `bytes */1234`, or returns `nil` if the text is not valid.
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

/// The trusted part of a partial file.
package struct DownloadPart: Hashable, Sendable {
    /// The metadata of the partial file.
    package var metadata: DownloadMetadata
    /// The number of trusted bytes.
    package var length: Int64

    package init(metadata: DownloadMetadata, length: Int64) {
        self.metadata = metadata
        self.length = length
    }
}
