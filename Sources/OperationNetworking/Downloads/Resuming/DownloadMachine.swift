// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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
        case begin(DownloadCard)
        /// The part is cut off there, and written on.
        case goOn(from: Int64, DownloadCard)
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
        let card: DownloadCard
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
        var card = DownloadCard(source: source)
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
