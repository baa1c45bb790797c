// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Which types of a body are accepted.
public struct ContentTypeRule: Sendable, Hashable {
    enum Kind: Hashable {
        case any
        case requested
        case only([String])
    }

    let kind: Kind

    /// Those that the request's `Accept` field names; all if it has none.
    ///
    /// It stands unless it is changed.
    public static let requested = ContentTypeRule(kind: .requested)

    /// All.
    public static let any = ContentTypeRule(kind: .any)

    /// These, such as `application/json` or `image/*`.
    public static func only(_ types: String...) -> ContentTypeRule { ContentTypeRule(kind: .only(types)) }

    /// JSON, also under the names of other types that are JSON (`application/problem+json`).
    public static let json = ContentTypeRule(kind: .only(["application/json", "*+json"]))

    func accepts(_ type: String?, requested: [String]) -> Bool {
        let wanted: [String]
        switch kind {
        case .any: return true
        case .requested: wanted = requested.flatMap { $0.split(separator: ",").map(String.init) }
        case .only(let types): wanted = types
        }
        guard !wanted.isEmpty else { return true }
        // What has no type is nothing that could be refused for it.
        guard let type = type.map(Self.bare), !type.isEmpty else { return true }
        return wanted.contains { Self.matches(type, Self.bare($0)) }
    }

    /// In small letters, without parameters and blanks.
    private static func bare(_ type: String) -> String {
        (type.split(separator: ";", maxSplits: 1).first.map(String.init) ?? "").trimmedBlanks.lowercased()
    }

    private static func matches(_ type: String, _ pattern: String) -> Bool {
        if pattern == "*/*" || pattern == "*" || pattern == type { return true }
        if pattern.hasPrefix("*+") { return type.hasSuffix(pattern.dropFirst()) }
        return pattern.hasSuffix("/*") && type.hasPrefix(pattern.dropLast())
    }
}
