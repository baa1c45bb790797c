// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// Why there is no credential that helps.
extension NetworkError.Code {
    /// The credential was rejected, renewed, and the new one rejected as well; the response is the ``NetworkError/cause``.
    ///
    /// An evaluator, a rule of `validate(_:)` or a ``ResponseRules/decodeError`` may throw an error with this code where the
    /// body of the response rejects the credential. The operation then does what it does after a 401: the realm renews the
    /// credential once for all requests, and the request is sent again once. If the response rejects the new credential,
    /// too, or if the request had no credential of a realm, the operation fails with the error that was thrown.
    public static let credentialRejected = Self("credentialRejected")
    /// No new credential could be fetched; why is the ``NetworkError/cause``.
    public static let refreshFailed = Self("refreshFailed")
    /// Fetching a new credential took too long.
    public static let refreshTimedOut = Self("refreshTimedOut")
    /// The credential was renewed too often in a short time.
    public static let tooManyRefreshes = Self("tooManyRefreshes")
    /// The realm was signed out of.
    public static let signedOut = Self("signedOut")
}
