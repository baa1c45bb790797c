// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What a log leaves out.
///
/// Three stars take the place of it. In a URL the values of the query are left out, whatever their names.
public struct LogRedaction: Sendable, Hashable {
    /// Whether everything is shown, secrets included.
    public private(set) var keepsSecrets = false
    private var names: Set<String> = []

    /// Parts of names that make a field a secret one.
    private static let suspicious = [
        "authorization", "cookie", "token", "secret", "password", "passwd", "apikey", "api-key", "api_key", "session",
        "signature", "credential",
    ]
    /// Names of secrets that are also parts of harmless ones.
    private static let exact: Set = ["pin", "otp", "key", "auth", "code", "pwd"]
    private static let stars = "***"

    /// Leaves out the usual secrets: what is called token, password, cookie and the like.
    public static let secrets = LogRedaction()

    /// Leaves out nothing: for a machine that nobody else can look into.
    public static let none: LogRedaction = {
        var redaction = LogRedaction()
        redaction.keepsSecrets = true
        return redaction
    }()

    /// Leaves out the usual secrets, and the fields of these names.
    public static func secrets(and names: String...) -> LogRedaction {
        var redaction = LogRedaction()
        redaction.names = Set(names.map { $0.lowercased() })
        return redaction
    }

    /// Whether what has that name is left out.
    public func hides(_ name: String) -> Bool {
        guard !keepsSecrets else { return false }
        let name = name.lowercased()
        return names.contains(name) || Self.exact.contains(name)
            || Self.suspicious.contains { name.contains($0) }
    }

    func value(of field: HeaderFields.Field) -> String { hides(field.name) ? Self.stars : field.value }

    /// The beginning of a body as text, or how long it is.
    ///
    /// Without secrets only what can be understood is shown: JSON and forms.
    func text(of body: Data, limit: Int) -> String {
        let length = "(\(body.count) bytes)"
        if keepsSecrets { return String(bytes: body.prefix(limit), encoding: .utf8) ?? length }
        if let value = try? JSONSerialization.jsonObject(with: body, options: .fragmentsAllowed),
            let bytes = try? JSONSerialization.data(
                withJSONObject: redacted(value), options: [.sortedKeys, .fragmentsAllowed])
        {
            let text = String(decoding: bytes.prefix(limit), as: UTF8.self)
            return bytes.count > limit ? "\(text)… \(length)" : text
        }
        return length
    }

    private func redacted(_ value: Any) -> Any {
        switch value {
        case let object as [String: Any]:
            object.reduce(into: [String: Any]()) { result, pair in
                result[pair.key] = hides(pair.key) ? Self.stars : redacted(pair.value)
            }
        case let array as [Any]: array.map(redacted)
        default: value
        }
    }
}
