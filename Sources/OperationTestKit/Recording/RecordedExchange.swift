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
