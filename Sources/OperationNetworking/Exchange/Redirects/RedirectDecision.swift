// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What becomes of a redirect.
///
/// More cases may be added.
public enum RedirectDecision: Sendable, Hashable {
    /// The request is made that the server proposes.
    case follow
    /// The redirect itself is the answer: its status, header fields and body are delivered.
    case stop
    /// The exchange fails with ``NetworkError/Code/redirectRefused``, for this reason.
    case refuse(String)
}
