// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension String {
    /// Returns text from a server for an error message: printable, without secrets, and cut to `limit` characters.
    package func quoted(limit: Int = 100) -> String {
        // The text is cut last, because a cut could split a secret. No message needs to look through a megabyte.
        let text = LogRedaction.secrets.withoutNamedSecrets(String(prefix(limit * 8)).printable())
        return text.count > limit ? "\(text.prefix(limit))…" : text
    }
}
