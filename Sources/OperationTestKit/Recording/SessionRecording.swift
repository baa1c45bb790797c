// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// A recording of requests and responses that you can save in a file and play back with a ``PlaybackSession``.
///
/// To create a recording, use a ``RecordingSession``. The file contains JSON that you can read, compare and edit. The
/// file contains each recorded body as text if possible, and as base64 otherwise.
public struct SessionRecording: Sendable {
    /// The recorded exchanges, in the order in which their tasks were created.
    package var exchanges: [RecordedExchange]
    /// The information that the recording hides.
    ///
    /// A ``PlaybackSession`` hides the same information in requests before it compares them with the recording.
    package let redaction: LogRedaction
    /// The maximum size, in bytes, of each body in the recording, or `nil` if the limit is unknown.
    ///
    /// The limit is unknown if an older version of OperationTestKit created the recording.
    package let bodyLimit: Int?

    /// Creates a recording from exchanges.
    package init(_ exchanges: [RecordedExchange] = [], redaction: LogRedaction = .secrets) {
        self.init(exchanges, redaction: redaction, bodyLimit: nil)
    }

    init(_ exchanges: [RecordedExchange], redaction: LogRedaction, bodyLimit: Int?) {
        (self.exchanges, self.redaction, self.bodyLimit) = (exchanges, redaction, bodyLimit.map { max($0, 0) })
    }

    /// Creates a recording from a file.
    ///
    /// - Parameter file: The file URL of the recording.
    /// - Throws: A ``SessionRecordingError`` if the file is not a readable recording.
    package init(contentsOf file: URL) throws(SessionRecordingError) {
        let data: Data
        do {
            data = try Data(contentsOf: file)
        } catch {
            throw SessionRecordingError(.unreadable, file.path, "\(error.localizedDescription)")
        }
        try self.init(data, name: file.path)
    }

    /// Creates a recording from the content of a file.
    ///
    /// - Throws: A ``SessionRecordingError`` if the data is not a readable recording.
    public init(_ data: Data) throws(SessionRecordingError) {
        try self.init(data, name: "the recording")
    }

    private init(_ data: Data, name: String) throws(SessionRecordingError) {
        let version: RecordingFile.Version
        do {
            version = try JSONDecoder().decode(RecordingFile.Version.self, from: data)
        } catch {
            throw SessionRecordingError(.notARecording, name, "it is not JSON with a format and a version")
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

    /// Returns the recording in the JSON format of a recording file.
    ///
    /// - Throws: A ``SessionRecordingError`` if the recording cannot be encoded.
    public func data() throws(SessionRecordingError) -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        do {
            return try encoder.encode(RecordingFile(self)) + [10]
        } catch {
            throw SessionRecordingError(.unwritable, "the recording", "\(error)")
        }
    }

    /// Writes the recording to a file.
    ///
    /// The method creates or replaces the file and creates missing directories.
    ///
    /// - Parameter file: The file URL of the recording.
    /// - Throws: A ``SessionRecordingError`` if the file cannot be written.
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
            "the key \(key.stringValue) is missing \(place(context.codingPath))"
        case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context),
            DecodingError.dataCorrupted(let context):
            "a value has the wrong type or format \(place(context.codingPath))"
        default: "\(error)"
        }
    }

    private static func place(_ path: [any CodingKey]) -> String {
        let steps = path.map { key in key.intValue.map { "[\($0)]" } ?? ".\(key.stringValue)" }
        return steps.isEmpty ? "at the top level" : "at \(steps.joined())"
    }
}

/// An error that explains why a recording cannot be read or written.
public struct SessionRecordingError: Error, Hashable, Sendable, CustomStringConvertible, LocalizedError {
    /// The code that identifies the cause of the error.
    package let code: Code
    /// The path of the file, or `the recording` if the error does not concern a file.
    public let file: String
    /// A description of the problem.
    package let detail: String

    init(_ code: Code, _ file: String, _ detail: String) {
        (self.code, self.file, self.detail) = (code, file, detail)
    }

    /// A description of the error that includes a possible solution.
    public var description: String { "\(file) \(code.explanation): \(detail). \(code.advice)" }

    /// A description of the error, which is equal to ``description``.
    public var errorDescription: String? { description }

    /// A code that identifies why a recording cannot be read or written.
    ///
    /// Future versions may add codes.
    package struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the code, such as `unreadable`.
        package let description: String
        let explanation: String
        let advice: String

        /// The file cannot be read.
        package static let unreadable = Code(
            description: "unreadable", explanation: "cannot be read",
            advice: "Check the path, or record it with a RecordingSession.")
        /// The file is not a recording.
        package static let notARecording = Code(
            description: "notARecording", explanation: "is not a recording",
            advice: "Correct it, or record it again with a RecordingSession.")
        /// The file was written by an incompatible version of OperationTestKit.
        package static let otherVersion = Code(
            description: "otherVersion", explanation: "was written by another version of the test kit",
            advice: "Record it again with a RecordingSession.")
        /// The file cannot be written.
        package static let unwritable = Code(
            description: "unwritable", explanation: "cannot be written",
            advice: "Check the folder and its permissions.")
    }
}

/// A recorded request and its response, without secrets.
package struct RecordedExchange: Sendable, Hashable {
    /// A way in which an exchange ended.
    ///
    /// Only a major version may add cases.
    package enum End: Sendable, Hashable {
        /// The server sent a complete response.
        case complete
        /// The exchange failed with an error.
        case failed(NetworkError)
        /// The client canceled the exchange.
        ///
        /// During playback, the response stays incomplete.
        case cancelled
    }

    /// The method of the request.
    package var method: String
    /// The URL of the request, without secrets.
    ///
    /// A ``RecordingSession`` replaces secret values, and query items that have no name, with `***`.
    package var url: String
    /// The headers of the request, without the headers that the session adds.
    package var requestHeaders: HeaderFields
    /// The body of the request.
    package var requestBody: RecordedBody
    /// The status and headers of the response, or `nil` if there was no response.
    package var response: ResponseHead?
    /// The part of the response body that was received.
    package var responseBody: RecordedBody
    /// The trailers of the response.
    package var trailers: HeaderFields
    /// The way in which the exchange ended.
    package var end: End

    /// Creates an exchange from a request and a response.
    package init(
        _ method: String = "GET", url: String, requestHeaders: HeaderFields = [:], requestBody: RecordedBody = .none,
        response: ResponseHead? = nil, responseBody: RecordedBody = .none, trailers: HeaderFields = [:],
        end: End = .complete
    ) {
        (self.method, self.url, self.requestHeaders, self.requestBody) = (method, url, requestHeaders, requestBody)
        (self.response, self.responseBody, self.trailers, self.end) = (response, responseBody, trailers, end)
    }
}

extension RecordedExchange: CustomStringConvertible {
    /// A description of the request and the response in one line.
    package var description: String {
        let answer = response.map { "\($0.status)" }
        let ending: String? =
            switch end {
            case .complete: nil
            case .failed(let error): "\(error.code)"
            case .cancelled: "canceled"
            }
        return "\(method) \(url): \([answer, ending].compactMap(\.self).joined(separator: ", "))"
    }
}

/// A body of a request or response in a ``SessionRecording``.
///
/// You cannot modify a body. To change a recording, replace the body.
package struct RecordedBody: Sendable, Hashable {
    /// The bytes of the body without secrets, or `nil` if the recording omits the bytes.
    package let data: Data?
    /// The number of bytes in the body, including bytes that the recording omits.
    package let count: Int
    /// The SHA-256 checksum of omitted bytes in hexadecimal digits, or `nil` if the checksum is unknown.
    package let checksum: String?
    /// The reason why bytes are missing, or `nil` if the body is complete.
    package let gap: Gap?

    /// An empty body.
    package static let none = RecordedBody(Data())

    /// Creates a complete body from its bytes.
    package init(_ data: Data) {
        self.data = data
        (count, checksum, gap) = (data.count, nil, nil)
    }

    /// Creates a body whose bytes the recording omits.
    ///
    /// - Parameters:
    ///   - count: The number of bytes in the body.
    ///   - checksum: The SHA-256 checksum of the body in hexadecimal digits. The default is `nil`, in which case every
    ///     request body matches during playback.
    ///   - gap: The reason why the bytes are missing. The default is ``Gap/tooLong``.
    package init(leftOut count: Int, checksum: String? = nil, because gap: Gap = .tooLong) {
        data = nil
        (self.count, self.checksum, self.gap) = (max(count, 0), checksum, gap)
    }

    /// Creates a body for a request that ended before the whole body was sent.
    ///
    /// During playback, every request body matches.
    package init(brokenOff data: Data) {
        self.data = data
        (count, checksum, gap) = (data.count, nil, .brokenOff)
    }

    /// The body as UTF-8 text, or `nil` if the bytes are missing or are not UTF-8 text.
    package var text: String? { data.flatMap { String(data: $0, encoding: .utf8) } }

    /// A reason why bytes of a body are missing.
    ///
    /// Future versions may add reasons.
    package struct Gap: Hashable, Sendable, CustomStringConvertible {
        /// The name of the reason, such as `tooLong`.
        package let description: String

        init(_ description: String) { self.description = description }

        /// The body exceeds the limit of the ``RecordingSession``.
        package static let tooLong = Gap("tooLong")
        /// The body cannot be searched for secrets, because it is compressed or does not match its content type.
        package static let opaque = Gap("opaque")
        /// The session could not read the file that it sent as the body, or the file has changed.
        package static let unreadable = Gap("unreadable")
        /// The stream that provided the body was not read to its end.
        package static let brokenOff = Gap("brokenOff")
    }
}

extension RecordedBody {
    /// Returns the body with redacted bytes, or with their checksum if they cannot be redacted.
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
    /// Advice for a response that cannot be played because of the gap.
    var advice: String {
        switch self {
        case .opaque:
            "It cannot be searched for secrets. Record it with `redaction: .none` and check the file yourself, or "
                + "replace the body manually."
        case .tooLong: "Record it with a larger bodyLimit."
        default: "Record it again."
        }
    }
}

/// A file that is sent and kept open, so that it can be read after the exchange even if its name is gone.
final class BodyFile: Sendable {
    private static let portionSize = 1 << 16

    private let region: FileRegion
    private let descriptor: Int32
    /// The status of the file when it was opened.
    private let status: FileRegionStatus

    /// Opens the file, and returns nil if this fails.
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

    /// Returns all bytes of the region, or nil if they cannot be read or were changed.
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
