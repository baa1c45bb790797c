// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

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
