// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What is there of a file already.
package struct DownloadPart: Hashable, Sendable {
    /// What is known of it.
    package var card: DownloadCard
    /// How many bytes of it can be trusted.
    package var length: Int64

    package init(card: DownloadCard, length: Int64) {
        self.card = card
        self.length = length
    }
}
