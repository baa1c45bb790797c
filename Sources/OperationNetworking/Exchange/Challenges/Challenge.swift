// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// One way to prove who one is, as a server offers it in `WWW-Authenticate`.
public struct Challenge: Hashable, Sendable {
    /// The scheme in lower case: `basic`, `digest`, `bearer`.
    public let scheme: String
    /// The data of schemes that have no parameters.
    public let token: String?
    private let parameters: [String: String]

    init(scheme: String, token: String?, parameters: [String: String]) {
        self.scheme = scheme
        self.token = token
        self.parameters = parameters
    }

    /// The value of a parameter, without quotation marks; the name in whatever case.
    public subscript(name: String) -> String? { parameters[name.asciiLowercased] }

    /// What the server calls the part of it that is protected; empty if it has no name for it.
    public var realm: String { self["realm"] ?? "" }

    /// Reads the challenges of one or more fields, each of which may have several (RFC 9110, section 11.6.1).
    ///
    /// What cannot be read is left out, up to the next comma.
    public static func parse(_ fields: [String]) -> [Challenge] {
        fields.flatMap { field in
            var parser = ChallengeParser(field)
            return parser.challenges()
        }
    }
}
