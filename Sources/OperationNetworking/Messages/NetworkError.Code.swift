// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

extension NetworkError {
    /// A code that identifies the kind of failure that a ``NetworkError`` describes.
    ///
    /// Future versions may add codes, so handle unknown codes when you compare codes.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the code, which you can use as a metric label.
        public let description: String

        /// Creates a custom error code with the given name.
        ///
        /// - Parameter name: The name, which should differ from the names of the standard codes.
        public init(_ name: String) {
            description = name
        }
    }
}

// Errors for an invalid request. Nothing was sent.
extension NetworkError.Code {
    /// The URL, the path or the query of the request is not valid.
    public static let invalidURL = Self("invalidURL")
    /// The URL does not contain a host.
    public static let missingHost = Self("missingHost")
    /// The origin of the URL differs from the origin of the base URL, and you did not allow other origins.
    public static let otherOrigin = Self("otherOrigin")
    /// The scheme of the URL is neither `http` nor `https`.
    public static let unsupportedScheme = Self("unsupportedScheme")
    /// The HTTP method is not a valid token, or is `CONNECT`.
    public static let invalidMethod = Self("invalidMethod")
    /// The name of a header is empty or is not a valid token.
    public static let invalidHeaderName = Self("invalidHeaderName")
    /// The value of a header contains a line break or another control character.
    public static let invalidHeaderValue = Self("invalidHeaderValue")
    /// The request contains a header that only the session can set.
    public static let reservedHeader = Self("reservedHeader")
    /// The request has a body, but its HTTP method is `GET`, `HEAD` or `TRACE`.
    public static let bodyNotAllowed = Self("bodyNotAllowed")
    /// The length of the request body differs from the length that the request specifies.
    public static let bodyLengthMismatch = Self("bodyLengthMismatch")
    /// A limit in the ``TransferOptions``, or the timeout interval of a `URLRequest`, is negative, zero, infinite or
    /// NaN.
    public static let invalidLimit = Self("invalidLimit")
}

// Errors of the request body.
extension NetworkError.Code {
    /// The session cannot read the request body, or the body's producer failed.
    public static let bodyUnreadable = Self("bodyUnreadable")
    /// The file that contains the request body changed before the session had read the whole body.
    public static let bodyChanged = Self("bodyChanged")
    /// The request must be sent again, but its body can be read only once.
    public static let bodyNotRepeatable = Self("bodyNotRepeatable")
    /// OperationKit cannot create a request body, such as JSON or a form, from the given values.
    public static let bodyNotEncodable = Self("bodyNotEncodable")
    /// OperationKit cannot compress request bodies on this system.
    public static let compressionUnavailable = Self("compressionUnavailable")
}

// Errors during the transfer.
extension NetworkError.Code {
    /// The program canceled the operation, the network task or the Swift task that sent the request, or a hook or the
    /// evaluator threw a `CancellationError`.
    public static let cancelled = Self("cancelled")
    /// The session was closed before or during the request.
    public static let sessionClosed = Self("sessionClosed")
    /// The session cannot send the request, for example because a library is missing or because the session was created
    /// before a call to `fork`.
    public static let sessionUnavailable = Self("sessionUnavailable")
    /// The request exceeded one of its timeouts.
    ///
    /// The ``NetworkError/phase`` of the error is the phase in which the timeout occurred.
    public static let timedOut = Self("timedOut")
    /// The system could not resolve the name of the host or the proxy.
    public static let cannotFindHost = Self("cannotFindHost")
    /// The session could not establish a connection to the server.
    public static let cannotConnect = Self("cannotConnect")
    /// The system had no network connection that the request could use.
    public static let notConnected = Self("notConnected")
    /// The proxy rejected the request or failed to forward it.
    public static let proxyFailed = Self("proxyFailed")
    /// The TLS handshake with the server failed.
    public static let secureConnectionFailed = Self("secureConnectionFailed")
    /// The session does not trust the server's certificate, the server's key is not a pinned key, or the session cannot
    /// read its trusted certificates.
    public static let untrustedCertificate = Self("untrustedCertificate")
    /// The client certificate is missing or unreadable, or the server rejected it.
    public static let clientCertificateRejected = Self("clientCertificateRejected")
    /// The connection was lost before the response was complete.
    public static let connectionLost = Self("connectionLost")
    /// The process or the system ran out of file descriptors or memory, or could not create a thread.
    public static let resourcesExhausted = Self("resourcesExhausted")
}

// Errors of the response.
extension NetworkError.Code {
    /// The response is missing, or it does not conform to HTTP.
    public static let invalidResponse = Self("invalidResponse")
    /// The response ended before its body was complete.
    public static let truncatedBody = Self("truncatedBody")
    /// The response headers are larger than the request or the session allows.
    public static let headerTooLarge = Self("headerTooLarge")
    /// The response body, or a line or an event in the body, exceeds its size limit.
    public static let bodyTooLarge = Self("bodyTooLarge")
    /// The session cannot decompress the response body.
    public static let undecodableBody = Self("undecodableBody")
    /// The decompressed response body exceeds 1 MiB, and the ratio between its size and the number of received bytes
    /// exceeds ``TransferOptions/maximumExpansion``.
    public static let expansionTooLarge = Self("expansionTooLarge")
    /// The transfer failed for a reason that no other code describes.
    ///
    /// The ``NetworkError/underlying`` error provides details.
    public static let transferFailed = Self("transferFailed")
}

// Errors that an operation finds in a response, or in itself.
extension NetworkError.Code {
    /// The response has a status code that the response rules do not accept.
    public static let unacceptableStatus = Self("unacceptableStatus")
    /// The response has a content type that the response rules or a sequence of server-sent events do not accept.
    public static let unacceptableContentType = Self("unacceptableContentType")
    /// The response has no body, but the operation needs a body to create its result.
    public static let emptyResponse = Self("emptyResponse")
    /// OperationKit cannot decode the response body, for example because the body is not valid JSON or not an image in
    /// a known format.
    public static let undecodableResult = Self("undecodableResult")
    /// Two Swift tasks iterated over the same response stream at the same time.
    public static let awaitedTwice = Self("awaitedTwice")
    /// A `validate(_:)` rule threw an error that is not a ``NetworkError``, or the authenticator rejected a successful
    /// response.
    public static let responseRefused = Self("responseRefused")
    /// The operation has no evaluator or no suitable collector, or the evaluator or another hook threw the error in
    /// ``NetworkError/cause``.
    public static let evaluationFailed = Self("evaluationFailed")
    /// The `URLSessionTask` that the `createTask` hook returned cannot send the request body.
    public static let unsupportedBody = Self("unsupportedBody")
    /// The `createTask` hook returned a task whose response cannot reach the operation.
    ///
    /// The task does not belong to the session that the hook received. In addition, one of these conditions is true:
    ///
    /// - The hook has already called a method of the task, such as `resume()`.
    /// - The hook has created several tasks that do not belong to the session.
    public static let unboundTask = Self("unboundTask")
    /// The operation has no request, a hook that prepares the request threw the error in ``NetworkError/cause``, or
    /// `URLSession` could not create a task.
    public static let preparationFailed = Self("preparationFailed")
}

// Errors of the layer above the sessions.
extension NetworkError.Code {
    /// The server sent more redirects than the redirect policy allows.
    public static let tooManyRedirects = Self("tooManyRedirects")
    /// The server redirected to a URL that the session has already requested with the same method, cookies and
    /// credential.
    public static let redirectLoop = Self("redirectLoop")
    /// The URL of a redirect is not valid, or the redirect contains several URLs.
    public static let invalidRedirect = Self("invalidRedirect")
    /// The server redirected from `https` to `http`, and the redirect policy does not allow this redirect.
    public static let insecureRedirect = Self("insecureRedirect")
    /// The closure of your redirect policy rejected a redirect.
    public static let redirectRefused = Self("redirectRefused")
}

// Errors that explain why no valid credential is available.
extension NetworkError.Code {
    /// The server rejected the credential and, after a refresh, also rejected the new credential.
    ///
    /// The ``NetworkError/cause`` is the error of the last rejected attempt.
    ///
    /// If the body of a response reports that the credential is not valid, your code can throw an error with this code.
    /// Throw the error in an evaluator, a rule of `validate(_:)` or a ``ResponseRules/decodeError`` closure.
    ///
    /// The authenticator then refreshes the credential, as after the status code 401, and the operation sends the
    /// request again. If your code throws the error again, or if no authenticator added a credential to the request,
    /// the operation fails with the thrown error.
    public static let credentialRejected = Self("credentialRejected")
    /// The authenticator could not refresh the credential.
    ///
    /// The ``NetworkError/cause`` contains the reason.
    public static let refreshFailed = Self("refreshFailed")
    /// The refresh of the credential took longer than ``AuthenticationOptions/refreshTimeout``.
    public static let refreshTimedOut = Self("refreshTimedOut")
    /// The credential needed another refresh, but the authenticator had already refreshed it
    /// ``AuthenticationOptions/maximumRefreshes`` times within ``AuthenticationOptions/refreshWindow``.
    public static let tooManyRefreshes = Self("tooManyRefreshes")
    /// The authenticator has no credential, because the program signed the user out.
    public static let signedOut = Self("signedOut")
}

// Errors that end the wait for a network, or replace it.
extension NetworkError.Code {
    /// The network is unavailable, and the offline policy does not allow the operation to wait.
    public static let offline = Self("offline")
    /// The network did not become available within the maximum time that the offline policy allows.
    public static let offlineTooLong = Self("offlineTooLong")
    /// The operation would have to wait for the network more often than the offline policy allows.
    public static let offlineTooOften = Self("offlineTooOften")
    /// The operation cannot wait for the network, because the maximum number of operations is already waiting for it.
    public static let tooManyOffline = Self("tooManyOffline")
    /// The server requested a pause in a `Retry-After` header, and the operation does not wait until the pause ends.
    ///
    /// For details, see ``OriginPauses``.
    public static let originPaused = Self("originPaused")
}

// Errors of the file of a download.
extension NetworkError.Code {
    /// The volume or the user's disk quota does not have enough space for the file.
    public static let diskFull = Self("diskFull")
    /// An item already exists at the destination, and the options do not allow replacing it.
    public static let destinationExists = Self("destinationExists")
    /// The destination is in use by another download.
    public static let destinationBusy = Self("destinationBusy")
    /// OperationKit cannot write a file, such as the file of a download or a temporary file for a body.
    ///
    /// The ``NetworkError/underlying`` error contains the reason.
    public static let fileUnwritable = Self("fileUnwritable")
    /// The downloaded file does not have the expected length.
    public static let unexpectedLength = Self("unexpectedLength")
    /// The downloaded file does not have the expected checksum.
    public static let checksumMismatch = Self("checksumMismatch")
}

extension NetworkError.Phase {
    /// OperationKit was writing, verifying or moving the file that contains the response body.
    public static let saving = Self("saving")
}
