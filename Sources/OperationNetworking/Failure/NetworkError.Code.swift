// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension NetworkError {
    /// The kind of a failure.
    ///
    /// New kinds may be added; compare, and keep a way for those you do not know.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the kind, fit for a metric's label.
        public let description: String

        /// Makes a kind of your own.
        public init(_ name: String) {
            description = name
        }
    }
}

// The request is wrong, and nothing was sent.
extension NetworkError.Code {
    /// The URL is incomplete or cannot be sent.
    public static let invalidURL = Self("invalidURL")
    /// The URL names no host.
    public static let missingHost = Self("missingHost")
    /// The URL is at another origin than the base, and the call does not allow that.
    public static let otherOrigin = Self("otherOrigin")
    /// The scheme is neither http nor https.
    public static let unsupportedScheme = Self("unsupportedScheme")
    /// The method is no token, or not one that a user may send.
    public static let invalidMethod = Self("invalidMethod")
    /// The name of a header field is empty or no token.
    public static let invalidHeaderName = Self("invalidHeaderName")
    /// The value of a header field has a line break or another control character in it.
    public static let invalidHeaderValue = Self("invalidHeaderValue")
    /// The session writes this header field itself.
    public static let reservedHeader = Self("reservedHeader")
    /// The method goes without a body.
    public static let bodyNotAllowed = Self("bodyNotAllowed")
    /// The length that was stated is not that of the body.
    public static let bodyLengthMismatch = Self("bodyLengthMismatch")
    /// A limit is no number, negative or zero.
    public static let invalidLimit = Self("invalidLimit")
}

// The request's body.
extension NetworkError.Code {
    /// The body cannot be read, or its producer failed.
    public static let bodyUnreadable = Self("bodyUnreadable")
    /// The file changed while it was sent.
    public static let bodyChanged = Self("bodyChanged")
    /// The body would have to be sent again and cannot be.
    public static let bodyNotRepeatable = Self("bodyNotRepeatable")
    /// A value cannot be written as the body that was wanted.
    public static let bodyNotEncodable = Self("bodyNotEncodable")
    /// Nothing can be compressed on this system.
    public static let compressionUnavailable = Self("compressionUnavailable")
}

// On the way.
extension NetworkError.Code {
    /// The task was cancelled.
    public static let cancelled = Self("cancelled")
    /// The session is closed.
    public static let sessionClosed = Self("sessionClosed")
    /// The session cannot work on this system.
    public static let sessionUnavailable = Self("sessionUnavailable")
    /// A time limit was exceeded; the phase says which.
    public static let timedOut = Self("timedOut")
    /// The name of the host, or of the proxy, could not be looked up.
    public static let cannotFindHost = Self("cannotFindHost")
    /// No connection could be made.
    public static let cannotConnect = Self("cannotConnect")
    /// The network is not there.
    public static let notConnected = Self("notConnected")
    /// The proxy refused or failed.
    public static let proxyFailed = Self("proxyFailed")
    /// TLS could not be agreed upon.
    public static let secureConnectionFailed = Self("secureConnectionFailed")
    /// The server's certificate is not to be trusted, or its key is not the pinned one.
    public static let untrustedCertificate = Self("untrustedCertificate")
    /// Our certificate is missing, cannot be read, or was refused.
    public static let clientCertificateRejected = Self("clientCertificateRejected")
    /// The connection broke before the response was complete.
    public static let connectionLost = Self("connectionLost")
    /// This program, or the system, has no sockets, threads or memory left.
    public static let resourcesExhausted = Self("resourcesExhausted")
}

// The response.
extension NetworkError.Code {
    /// What came is no HTTP, or contradicts itself.
    public static let invalidResponse = Self("invalidResponse")
    /// The body ended before its stated length.
    public static let truncatedBody = Self("truncatedBody")
    /// The head of the response is larger than allowed.
    public static let headerTooLarge = Self("headerTooLarge")
    /// The body is larger than allowed.
    public static let bodyTooLarge = Self("bodyTooLarge")
    /// The body cannot be decompressed.
    public static let undecodableBody = Self("undecodableBody")
    /// The decompressed body is too many times larger than what was received.
    public static let expansionTooLarge = Self("expansionTooLarge")
    /// Anything else; the underlying number and text say more.
    public static let transferFailed = Self("transferFailed")
}
