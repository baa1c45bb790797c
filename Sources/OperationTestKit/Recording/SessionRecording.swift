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
