// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// What a ``RecordingSession`` saw, to be kept in a file beside the tests and played by a ``PlaybackSession``.
///
/// The file is JSON, one exchange after another, made to be read, compared and changed by hand: bodies are text where
/// they are text, and base64 where they are not. Exchanges can be made by hand, too.
public struct SessionRecording: Sendable {
    /// The exchanges, in the order in which their tasks were made.
    public var exchanges: [RecordedExchange]
    /// What was left out: a request that is played back is compared without it, too.
    public let redaction: LogRedaction
    /// How many bytes of a body were kept; nil of a recording that was made by hand, or by an older version.
    public let bodyLimit: Int?

    /// Makes a recording of exchanges.
    public init(_ exchanges: [RecordedExchange] = [], redaction: LogRedaction = .secrets) {
        self.init(exchanges, redaction: redaction, bodyLimit: nil)
    }

    init(_ exchanges: [RecordedExchange], redaction: LogRedaction, bodyLimit: Int?) {
        (self.exchanges, self.redaction, self.bodyLimit) = (exchanges, redaction, bodyLimit.map { max($0, 0) })
    }

    /// Reads a recording.
    public init(contentsOf file: URL) throws(SessionRecordingError) {
        let data: Data
        do {
            data = try Data(contentsOf: file)
        } catch {
            throw SessionRecordingError(.unreadable, file.path, "\(error.localizedDescription)")
        }
        try self.init(data, name: file.path)
    }

    /// Reads a recording from the bytes of a file.
    public init(_ data: Data) throws(SessionRecordingError) {
        try self.init(data, name: "the recording")
    }

    private init(_ data: Data, name: String) throws(SessionRecordingError) {
        let version: RecordingFile.Version
        do {
            version = try JSONDecoder().decode(RecordingFile.Version.self, from: data)
        } catch {
            throw SessionRecordingError(.notARecording, name, "it is no JSON with a format and a version")
        }
        guard version.format == RecordingFile.format else {
            throw SessionRecordingError(.notARecording, name, "its format is \"\(version.format)\"")
        }
        guard version.version == RecordingFile.version else {
            throw SessionRecordingError(.otherVersion, name, "its version is \(version.version)")
        }
        do {
            self = try JSONDecoder().decode(RecordingFile.self, from: data).recording()
        } catch let flaw as RecordingFile.Flaw {
            throw SessionRecordingError(.notARecording, name, flaw.detail)
        } catch {
            throw SessionRecordingError(.notARecording, name, Self.place(of: error))
        }
    }

    /// The recording as it stands in a file.
    public func data() throws(SessionRecordingError) -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        do {
            return try encoder.encode(RecordingFile(self)) + [10]
        } catch {
            throw SessionRecordingError(.unwritable, "the recording", "\(error)")
        }
    }

    /// Writes the recording to a file, in the place of one that may be there.
    public func write(to file: URL) throws(SessionRecordingError) {
        let data = try data()
        do {
            let folder = file.deletingLastPathComponent()
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try data.write(to: file, options: .atomic)
        } catch {
            throw SessionRecordingError(.unwritable, file.path, "\(error.localizedDescription)")
        }
    }

    private static func place(of error: any Error) -> String {
        switch error {
        case DecodingError.keyNotFound(let key, let context):
            "there is no \(key.stringValue) \(place(context.codingPath))"
        case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context),
            DecodingError.dataCorrupted(let context):
            "a value is not as it should be \(place(context.codingPath))"
        default: "\(error)"
        }
    }

    private static func place(_ path: [any CodingKey]) -> String {
        let steps = path.map { key in key.intValue.map { "[\($0)]" } ?? ".\(key.stringValue)" }
        return steps.isEmpty ? "at its top" : "at \(steps.joined())"
    }
}

/// Why a recording cannot be read or written.
public struct SessionRecordingError: Error, Hashable, Sendable, CustomStringConvertible, LocalizedError {
    /// The kind of the failure.
    public let code: Code
    /// The file.
    public let file: String
    /// What was found.
    public let detail: String

    init(_ code: Code, _ file: String, _ detail: String) {
        (self.code, self.file, self.detail) = (code, file, detail)
    }

    /// The failure as a sentence that says what to do.
    public var description: String { "\(file) \(code.explanation): \(detail). \(code.advice)" }

    /// The failure as a sentence that says what to do.
    public var errorDescription: String? { description }

    /// The kind of a failure.
    ///
    /// New kinds may be added; compare, and keep a way for those you do not know.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the kind.
        public let description: String
        let explanation: String
        let advice: String

        /// The file cannot be read.
        public static let unreadable = Code(
            description: "unreadable", explanation: "cannot be read",
            advice: "Check the path, or record it with a RecordingSession.")
        /// The file is no recording.
        public static let notARecording = Code(
            description: "notARecording", explanation: "is no recording",
            advice: "Mend it, or record it anew with a RecordingSession.")
        /// The file was written by another version of the test kit.
        public static let otherVersion = Code(
            description: "otherVersion", explanation: "was written by another version of the test kit",
            advice: "Record it anew with a RecordingSession.")
        /// The file cannot be written.
        public static let unwritable = Code(
            description: "unwritable", explanation: "cannot be written", advice: "Check the folder and its rights.")
    }
}

/// A request that was sent, and what came of it: one entry of a ``SessionRecording``, without the secrets.
public struct RecordedExchange: Sendable, Hashable {
    /// How the exchange ended.
    ///
    /// No case will be added.
    public enum End: Sendable, Hashable {
        /// The response came whole.
        case complete
        /// The transfer failed.
        case failed(NetworkError)
        /// The client cancelled it; played back, nothing more comes.
        case cancelled
    }

    /// The method of the request.
    public var method: String
    /// The URL of the request, as ``RecordingSession`` writes it: secret values and those without a name are `***`.
    public var url: String
    /// The header fields of the request, without those that a session writes itself.
    public var requestHeaders: HeaderFields
    /// The body of the request.
    public var requestBody: RecordedBody
    /// The head of the response; nil if none came.
    public var response: ResponseHead?
    /// The body of the response, as far as it came.
    public var responseBody: RecordedBody
    /// The fields behind the body.
    public var trailers: HeaderFields
    /// How it ended.
    public var end: End

    /// Makes an exchange by hand: a request to `url`, and what comes of it.
    ///
    /// ```swift
    /// import Foundation
    /// import OperationNetworking
    /// import OperationTestKit
    ///
    /// func player(for url: URL) -> PlaybackSession {
    ///     let songs = RecordedExchange(
    ///         url: url.absoluteString, response: ResponseHead(url: url, status: 200),
    ///         responseBody: RecordedBody(Data(#"["One", "Two"]"#.utf8)))
    ///     return PlaybackSession(SessionRecording([songs]))
    /// }
    /// ```
    public init(
        _ method: String = "GET", url: String, requestHeaders: HeaderFields = [:], requestBody: RecordedBody = .none,
        response: ResponseHead? = nil, responseBody: RecordedBody = .none, trailers: HeaderFields = [:],
        end: End = .complete
    ) {
        (self.method, self.url, self.requestHeaders, self.requestBody) = (method, url, requestHeaders, requestBody)
        (self.response, self.responseBody, self.trailers, self.end) = (response, responseBody, trailers, end)
    }
}

extension RecordedExchange: CustomStringConvertible {
    /// Request and answer in a line.
    public var description: String {
        let answer = response.map { "\($0.status)" }
        let ending: String? =
            switch end {
            case .complete: nil
            case .failed(let error): "\(error.code)"
            case .cancelled: "cancelled"
            }
        return "\(method) \(url): \([answer, ending].compactMap(\.self).joined(separator: ", "))"
    }
}

/// The body of a request or response in a ``SessionRecording``.
///
/// It is made as a whole and never changed in part: to change a recording by hand, put another one in its place.
public struct RecordedBody: Sendable, Hashable {
    /// The bytes without the secrets; nil if they were left out, for the reason that ``gap`` says.
    public let data: Data?
    /// How many there are, or were.
    public let count: Int
    /// The SHA-256 of bytes that were left out, in hexadecimal digits; nil if that is not known.
    public let checksum: String?
    /// Why not all bytes are there; nil if they are.
    public let gap: Gap?

    /// No bytes.
    public static let none = RecordedBody(Data())

    /// These bytes, and no others.
    public init(_ data: Data) {
        self.data = data
        (count, checksum, gap) = (data.count, nil, nil)
    }

    /// Bytes that are not there.
    ///
    /// - Parameters:
    ///   - count: How many they were.
    ///   - checksum: Their SHA-256 in hexadecimal digits; without it a request is compared without its body.
    ///   - gap: Why they are not there.
    public init(leftOut count: Int, checksum: String? = nil, because gap: Gap = .tooLong) {
        data = nil
        (self.count, self.checksum, self.gap) = (max(count, 0), checksum, gap)
    }

    /// The first bytes of a request's body that was not sent to its end; it is compared without them.
    public init(brokenOff data: Data) {
        self.data = data
        (count, checksum, gap) = (data.count, nil, .brokenOff)
    }

    /// The bytes as text, if they are.
    public var text: String? { data.flatMap { String(data: $0, encoding: .utf8) } }

    /// Why bytes of a body are missing.
    ///
    /// New reasons may be added; compare, and keep a way for those you do not know.
    public struct Gap: Hashable, Sendable, CustomStringConvertible {
        /// The name of the reason.
        public let description: String

        init(_ description: String) { self.description = description }

        /// There were more than a ``RecordingSession`` keeps.
        public static let tooLong = Gap("tooLong")
        /// They cannot be looked into for secrets: they are compressed, or not what their type says.
        public static let opaque = Gap("opaque")
        /// The file from which they were sent could not be read, or was changed.
        public static let unreadable = Gap("unreadable")
        /// The stream from which they were sent was not read to its end.
        public static let brokenOff = Gap("brokenOff")
    }
}

extension RecordedBody {
    /// The same body with what is left of its bytes without the secrets; nil if they cannot be looked into, and then
    /// there is their checksum.
    func cleaned(_ clean: Data?, checksum: (Data) -> String) -> RecordedBody {
        guard let data else { return self }
        if gap == .brokenOff {
            return clean.map { RecordedBody(brokenOff: $0) } ?? RecordedBody(leftOut: data.count, because: .brokenOff)
        }
        guard let clean else {
            return RecordedBody(leftOut: data.count, checksum: checksum(data), because: .opaque)
        }
        return RecordedBody(clean)
    }
}

extension RecordedBody.Gap {
    /// What to do where a response cannot be played for it.
    var advice: String {
        switch self {
        case .opaque:
            "It cannot be looked into for secrets. Record it with `redaction: .none` and look at the file yourself, "
                + "or put a body in its place by hand."
        case .tooLong: "Record it with a greater bodyLimit."
        default: "Record it anew."
        }
    }
}

/// A file that is sent, held open: it can be read when the exchange is over, also if its name is gone by then.
final class BodyFile: Sendable {
    private static let portionSize = 1 << 16

    private let region: FileRegion
    private let descriptor: Int32
    /// What the file was like when it was opened.
    private let status: FileRegionStatus

    /// Nil if it cannot be opened.
    init?(_ region: FileRegion) {
        let descriptor = open(region.url.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { return nil }
        guard let status = FileRegionStatus(descriptor: descriptor) else {
            close(descriptor)
            return nil
        }
        (self.region, self.descriptor, self.status) = (region, descriptor, status)
    }

    deinit { close(descriptor) }

    /// All bytes of the region; nil if they cannot be read, or were changed meanwhile.
    func tally(limit: Int) -> BodyTally? {
        var tally = BodyTally(limit: limit)
        var offset: Int64 = 0
        while offset < region.length {
            let wanted = Int(min(region.length - offset, Int64(Self.portionSize)))
            let portion = [UInt8](unsafeUninitializedCapacity: wanted) { buffer, count in
                count = max(pread(descriptor, buffer.baseAddress, wanted, off_t(region.offset + offset)), 0)
            }
            guard !portion.isEmpty else { return nil }
            portion.withUnsafeBytes { tally.take($0) }
            offset += Int64(portion.count)
        }
        return FileRegionStatus(descriptor: descriptor) == status ? tally : nil
    }
}
