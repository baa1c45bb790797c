// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension NetworkError {
    /// A code that identifies the kind of a failure.
    ///
    /// Future versions may add codes. Handle unknown codes when you compare codes.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the code, suitable as a metric label.
        public let description: String

        /// Creates a custom code.
        public init(_ name: String) {
            description = name
        }
    }
}

// Errors for an invalid request. Nothing was sent.
extension NetworkError.Code {
    /// The URL is incomplete or cannot be sent.
    public static let invalidURL = Self("invalidURL")
    /// The URL has no host.
    public static let missingHost = Self("missingHost")
    /// The URL has a different origin from the base, and the call does not allow another origin.
    public static let otherOrigin = Self("otherOrigin")
    /// The scheme is neither `http` nor `https`.
    public static let unsupportedScheme = Self("unsupportedScheme")
    /// The HTTP method is not a valid token, or requests may not use it.
    public static let invalidMethod = Self("invalidMethod")
    /// The name of a header is empty or not a valid token.
    public static let invalidHeaderName = Self("invalidHeaderName")
    /// The value of a header contains a line break or another control character.
    public static let invalidHeaderValue = Self("invalidHeaderValue")
    /// The session sets this header itself.
    public static let reservedHeader = Self("reservedHeader")
    /// The HTTP method does not allow a body.
    public static let bodyNotAllowed = Self("bodyNotAllowed")
    /// The stated length is not the length of the body.
    public static let bodyLengthMismatch = Self("bodyLengthMismatch")
    /// A limit is negative, zero or not a number.
    public static let invalidLimit = Self("invalidLimit")
}

// Errors of the request body.
extension NetworkError.Code {
    /// The body cannot be read, or its producer failed.
    public static let bodyUnreadable = Self("bodyUnreadable")
    /// The file changed while it was being sent.
    public static let bodyChanged = Self("bodyChanged")
    /// The body must be sent again, but can be read only once.
    public static let bodyNotRepeatable = Self("bodyNotRepeatable")
    /// A value cannot be encoded as a body of the requested kind.
    public static let bodyNotEncodable = Self("bodyNotEncodable")
    /// Compression is not available on this system.
    public static let compressionUnavailable = Self("compressionUnavailable")
}

// Errors during the transfer.
extension NetworkError.Code {
    /// The task was canceled.
    public static let cancelled = Self("cancelled")
    /// The session is closed.
    public static let sessionClosed = Self("sessionClosed")
    /// The session does not work on this system.
    public static let sessionUnavailable = Self("sessionUnavailable")
    /// A timeout expired.
    ///
    /// The phase of the error identifies the timeout.
    public static let timedOut = Self("timedOut")
    /// The name of the host or the proxy could not be resolved.
    public static let cannotFindHost = Self("cannotFindHost")
    /// No connection could be established.
    public static let cannotConnect = Self("cannotConnect")
    /// The network is unavailable.
    public static let notConnected = Self("notConnected")
    /// The proxy rejected the request or failed.
    public static let proxyFailed = Self("proxyFailed")
    /// The TLS handshake failed.
    public static let secureConnectionFailed = Self("secureConnectionFailed")
    /// The server's certificate is not trusted, or its key is not the pinned key.
    public static let untrustedCertificate = Self("untrustedCertificate")
    /// The client certificate is missing, cannot be read, or was rejected.
    public static let clientCertificateRejected = Self("clientCertificateRejected")
    /// The connection was lost before the response was complete.
    public static let connectionLost = Self("connectionLost")
    /// The process or the system has no sockets, threads or memory left.
    public static let resourcesExhausted = Self("resourcesExhausted")
}

// Errors of the response.
extension NetworkError.Code {
    /// The response is not HTTP, or contradicts itself.
    public static let invalidResponse = Self("invalidResponse")
    /// The body ended before its stated length.
    public static let truncatedBody = Self("truncatedBody")
    /// The response headers are larger than allowed.
    public static let headerTooLarge = Self("headerTooLarge")
    /// The body is larger than allowed.
    public static let bodyTooLarge = Self("bodyTooLarge")
    /// The body cannot be decompressed.
    public static let undecodableBody = Self("undecodableBody")
    /// The ratio between the size of the decompressed body and the received size is larger than allowed.
    public static let expansionTooLarge = Self("expansionTooLarge")
    /// The transfer failed for another reason.
    ///
    /// The underlying number and text provide details.
    public static let transferFailed = Self("transferFailed")
}

// Errors that an operation finds in a response, or in itself.
extension NetworkError.Code {
    /// The operation does not accept the status code of the response.
    public static let unacceptableStatus = Self("unacceptableStatus")
    /// The operation does not accept the content type of the response.
    public static let unacceptableContentType = Self("unacceptableContentType")
    /// The response has no body, but the operation requires one.
    public static let emptyResponse = Self("emptyResponse")
    /// The decoder cannot decode the body.
    public static let undecodableResult = Self("undecodableResult")
    /// Two tasks iterate over one response at the same time.
    public static let awaitedTwice = Self("awaitedTwice")
    /// One of your validation rules rejected the response.
    public static let responseRefused = Self("responseRefused")
    /// The evaluator or a hook of the operation threw a custom error, which is the ``NetworkError/cause``.
    public static let evaluationFailed = Self("evaluationFailed")
    /// The task that a hook created cannot send the body.
    public static let unsupportedBody = Self("unsupportedBody")
    /// A hook returned a task whose response cannot reach the operation.
    ///
    /// The task belongs to another session. Either the hook already called a method of the task, such as `resume()`, or
    /// the hook wrapped one of several such tasks.
    public static let unboundTask = Self("unboundTask")
    /// The hook that prepares the request threw a custom error, which is the ``NetworkError/cause``.
    public static let preparationFailed = Self("preparationFailed")
}

// Errors of the layer above the sessions.
extension NetworkError.Code {
    /// The server sent more redirects than the policy allows.
    public static let tooManyRedirects = Self("tooManyRedirects")
    /// A redirect leads to a request that was already sent and would receive the same response.
    public static let redirectLoop = Self("redirectLoop")
    /// A redirect contains no address, several addresses, or an address to which no request can be sent.
    public static let invalidRedirect = Self("invalidRedirect")
    /// A redirect leads from an encrypted connection to an unencrypted one.
    public static let insecureRedirect = Self("insecureRedirect")
    /// Your redirect policy rejected a redirect.
    public static let redirectRefused = Self("redirectRefused")
}

// Errors that explain why no valid credential is available.
extension NetworkError.Code {
    /// The server rejected the credential, and after a refresh it also rejected the new one.
    ///
    /// The ``NetworkError/cause`` contains the response.
    ///
    /// If the body of a response rejects the credential, an evaluator, a rule of `validate(_:)` or a
    /// ``ResponseRules/decodeError`` closure can throw an error with this code. The operation then does the same as
    /// after the status code 401. The realm refreshes the credential once for all requests, and the request is sent
    /// again once. The operation fails with the thrown error if the response also rejects the new credential. The
    /// operation also fails with this error if the request had no credential of a realm.
    public static let credentialRejected = Self("credentialRejected")
    /// The refresh of the credential failed.
    ///
    /// The ``NetworkError/cause`` is the reason.
    public static let refreshFailed = Self("refreshFailed")
    /// The refresh of the credential timed out.
    public static let refreshTimedOut = Self("refreshTimedOut")
    /// The credential was refreshed too often in a short time.
    public static let tooManyRefreshes = Self("tooManyRefreshes")
    /// The user signed out of the realm.
    public static let signedOut = Self("signedOut")
}

// Errors that end the wait for a network, or replace it.
extension NetworkError.Code {
    /// The network is unavailable, and the operation may not wait for it.
    public static let offline = Self("offline")
    /// The network did not return within the maximum time that the operation may wait.
    public static let offlineTooLong = Self("offlineTooLong")
    /// The network was lost more often than the operation may wait for it.
    public static let offlineTooOften = Self("offlineTooOften")
    /// The maximum number of operations is already waiting for the network.
    public static let tooManyOffline = Self("tooManyOffline")
    /// The server asked for a pause (`Retry-After`) that is longer than the operation may wait.
    ///
    /// For details, see ``OriginPauses``.
    public static let originPaused = Self("originPaused")
}

// Errors of the file of a download.
extension NetworkError.Code {
    /// The volume or the user's disk quota has no space for the file.
    public static let diskFull = Self("diskFull")
    /// An item exists at the destination, and the options do not allow replacing it.
    public static let destinationExists = Self("destinationExists")
    /// Another download writes to the same destination.
    public static let destinationBusy = Self("destinationBusy")
    /// The file cannot be written.
    ///
    /// The underlying error provides the reason.
    public static let fileUnwritable = Self("fileUnwritable")
    /// The file does not have the expected length.
    public static let unexpectedLength = Self("unexpectedLength")
    /// The file does not have the expected checksum.
    public static let checksumMismatch = Self("checksumMismatch")
}

extension NetworkError.Phase {
    /// The file was being written, verified or moved to its destination.
    public static let saving = Self("saving")
}
