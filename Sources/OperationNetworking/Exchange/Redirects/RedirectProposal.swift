// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A redirect that waits for a decision: where it comes from, and which request would be made.
public struct RedirectProposal: Sendable {
    /// Which one it is, counted from one.
    public let count: Int
    /// The response that asks for it.
    public let response: ResponseHead
    /// The method that the new request would have.
    public let method: String
    /// The address that it would go to, with the fragment.
    public let url: URL
    /// The header fields that it would have, but for cookies of the jar and credentials.
    public let headers: HeaderFields
    /// Whether the body would be sent again.
    public let keepsBody: Bool
    /// Whether scheme, host or port change, so that secrets are left out.
    public let changesOrigin: Bool
}
