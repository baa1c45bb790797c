// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Asks a rule of yours for a credential.
public struct CredentialQuestion: Sendable {
    /// What it is for.
    public let space: ProtectionSpace
    /// The challenge as it came.
    public let challenge: Challenge
    /// The address that was asked for.
    public let url: URL
    /// The credentials that this space refused during this exchange, the last one at the end.
    public let refused: [Credential]
}
