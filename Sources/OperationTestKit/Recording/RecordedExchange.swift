// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

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
    /// The URL of the request.
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
public struct RecordedBody: Sendable, Hashable {
    /// The bytes; nil if they were left out, because there were too many or they cannot be looked into for secrets.
    public var data: Data?
    /// How many there are.
    public var count: Int
    /// The SHA-256 of those that were left out, in hexadecimal digits.
    public var checksum: String?

    /// No bytes.
    public static let none = RecordedBody(Data())

    /// These bytes.
    public init(_ data: Data) {
        self.data = data
        count = data.count
    }

    init(leftOut count: Int, checksum: String) {
        (self.count, self.checksum) = (count, checksum)
    }

    /// The bytes as text, if they are.
    public var text: String? { data.flatMap { String(data: $0, encoding: .utf8) } }
}
