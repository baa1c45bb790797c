// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension String {
    /// What a server wrote, as an error message quotes it: printable, without secrets, and not longer than `limit` characters.
    package func quoted(limit: Int = 100) -> String {
        // A secret may be cut in two, so the text is cut last; and no message needs to look through a megabyte.
        let text = LogRedaction.secrets.withoutNamedSecrets(String(prefix(limit * 8)).printable())
        return text.count > limit ? "\(text.prefix(limit))…" : text
    }
}
