// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What a request sends beside its head.
///
/// It is a description: nothing is opened or read before the session needs the bytes, and whoever sends it again (after
/// a redirect, a challenge or a failure) asks for it anew. A body that cannot be sent again says so.
public struct RequestBody: Sendable {
    package enum Source: Sendable {
        case none
        case data(Data)
        case file(FileRegion)
        case stream(@Sendable () throws -> any BodyProducer)
    }

    package let source: Source
    /// How many bytes it has; nil if that is known only at its end.
    public let length: Int64?
    /// Whether it can be sent more than once.
    public let canBeSentAgain: Bool
    /// What the bytes are: a request without a `Content-Type` field gets one that says this.
    public let contentType: String?
    /// How the bytes are compressed: a request without a `Content-Encoding` field gets one that says this.
    public let contentEncoding: String?
    /// Of a body that can be sent once: whether it was asked for.
    private let use: BodyUse?

    package init(
        source: Source, length: Int64?, canBeSentAgain: Bool, contentType: String? = nil,
        contentEncoding: String? = nil, use: BodyUse? = nil
    ) {
        self.use = use
        self.source = source
        self.length = length
        self.canBeSentAgain = canBeSentAgain
        self.contentType = contentType
        self.contentEncoding = contentEncoding
    }

    /// No body.
    public static let none = RequestBody(source: .none, length: nil, canBeSentAgain: true)

    /// Bytes in memory.
    public static func data(_ data: Data) -> RequestBody {
        RequestBody(source: .data(data), length: Int64(data.count), canBeSentAgain: true)
    }

    /// A file, or a part of it, read while it is sent, on a thread of its own: a slow disk holds up nothing else.
    public static func file(_ region: FileRegion) -> RequestBody {
        RequestBody(source: .file(region), length: region.length, canBeSentAgain: true)
    }

    /// Bytes that a producer makes while they are sent.
    ///
    /// - Parameters:
    ///   - length: How many bytes there will be, if known: then the producer must give exactly so many, and one that
    ///     gives more fails the request. Otherwise they are sent in chunks.
    ///   - canBeSentAgain: Whether `makeProducer` may be called more than once, each time for the same bytes.
    ///   - makeProducer: Makes the producer of one transfer. It is called on a thread of the session and must not block.
    public static func stream(
        length: Int64? = nil, canBeSentAgain: Bool, _ makeProducer: @escaping @Sendable () throws -> any BodyProducer
    ) -> RequestBody {
        guard !canBeSentAgain else {
            return RequestBody(source: .stream(makeProducer), length: length, canBeSentAgain: true)
        }
        let use = BodyUse()
        let source = Source.stream {
            use.note()
            return try makeProducer()
        }
        return RequestBody(source: source, length: length, canBeSentAgain: false, use: use)
    }

    /// Whether it can be sent now: again, or because nobody asked for it yet.
    package var canBeSentNow: Bool { canBeSentAgain || use?.isNoted == false }

    /// Bytes that are read from a stream of Foundation's while they are sent, on a queue of their own.
    ///
    /// They can be sent once. The stream must not be opened, and is closed at its end.
    public static func stream(_ stream: sending InputStream, length: Int64? = nil) -> RequestBody {
        let once = Locked<StreamBox?>(StreamBox(stream: stream))
        return .stream(length: length, canBeSentAgain: false) {
            guard let box = once.withLock({ exchange(&$0, with: nil) }) else {
                throw NetworkError(
                    code: .bodyNotRepeatable, phase: .checking, message: "The stream was read already. Make a new one.")
            }
            return InputStreamProducer(box.stream)
        }
    }

    /// Whether there is none; a body of no bytes is one.
    public var isNone: Bool {
        if case .none = source { true } else { false }
    }

    /// The same body, with a word on what its bytes are.
    public func withContentType(_ contentType: String) -> RequestBody {
        described(as: contentType, encoding: contentEncoding)
    }

    func described(as contentType: String?, encoding: String?) -> RequestBody {
        RequestBody(
            source: source, length: length, canBeSentAgain: canBeSentAgain, contentType: contentType,
            contentEncoding: encoding, use: use)
    }

    func withLength(_ length: Int64) -> RequestBody {
        RequestBody(
            source: source, length: length, canBeSentAgain: canBeSentAgain, contentType: contentType,
            contentEncoding: contentEncoding, use: use)
    }
}

private struct StreamBox: @unchecked Sendable {
    // Sendable: it is handed to one producer, which alone reads it.
    let stream: InputStream
}
