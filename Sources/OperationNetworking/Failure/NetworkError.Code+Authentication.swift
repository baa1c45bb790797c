// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// Why there is no credential that helps.
extension NetworkError.Code {
    /// The credential was rejected, renewed, and the new one rejected as well; the response is the ``NetworkError/cause``.
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
