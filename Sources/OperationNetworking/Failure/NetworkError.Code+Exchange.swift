// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// What the layer above the sessions finds wrong.
extension NetworkError.Code {
    /// More redirects came than the policy allows.
    public static let tooManyRedirects = Self("tooManyRedirects")
    /// A redirect leads to a request that was made before and will be answered in the same way.
    public static let redirectLoop = Self("redirectLoop")
    /// A redirect names no address, several, or one that cannot be asked.
    public static let invalidRedirect = Self("invalidRedirect")
    /// A redirect leads from an encrypted connection to one that is not.
    public static let insecureRedirect = Self("insecureRedirect")
    /// The user's rule refused a redirect.
    public static let redirectRefused = Self("redirectRefused")
}
