// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

extension LogRedaction {
    /// A field of a form, without what is to be left out.
    struct FormField: Sendable {
        /// As it stands in the form.
        let shown: String
        /// The name as it is meant.
        let name: String
        /// The value as it is meant; nil if there is no equals sign.
        let value: String?
    }

    /// The fields of a form; nil of what is none, or too long.
    func form(_ body: Data, type: String) -> [FormField]? {
        guard type.lowercased().hasPrefix("application/x-www-form-urlencoded"), body.count <= Self.mostBytes,
            let text = String(bytes: body, encoding: .utf8)
        else { return nil }
        if text.isEmpty { return [] }
        let parts = text.unicodeScalars.split(separator: "&", omittingEmptySubsequences: false).map { Substring($0) }
        // A form may say in one field that another is secret: name=password&value=…
        let hidesValue = parts.contains { part in
            guard let equals = part.unicodeScalars.firstIndex(of: "=") else { return false }
            let value = Substring(part.unicodeScalars[equals...].dropFirst())
            return hidesNeighbours(Self.meant(part[..<equals]), Self.meant(value))
        }
        return parts.map { field($0, hidesValue) }
    }

    private func field(_ part: Substring, _ hidesValue: Bool) -> FormField {
        let equals = part.unicodeScalars.firstIndex(of: "=")
        let name = part[..<(equals ?? part.endIndex)]
        let value = equals.map { Self.meant(Substring(part.unicodeScalars[$0...].dropFirst())) }
        if keepsSecrets || part.isEmpty {
            return FormField(shown: String(part), name: Self.meant(name), value: value)
        }
        // A part may be a secret as a whole.
        guard RequestSummary.name(ofPart: part, self) != nil else {
            return FormField(shown: Self.stars, name: Self.stars, value: nil)
        }
        let plain = Self.meant(name)
        guard let value, !shows(value, of: plain) || hidesValue && Self.isValue(plain) else {
            return FormField(shown: String(part), name: plain, value: value)
        }
        return FormField(shown: "\(name)=\(Self.stars)", name: plain, value: Self.stars)
    }

    private static func meant(_ text: Substring) -> String {
        let text = text.replacing("+", with: " ")
        return text.removingPercentEncoding ?? String(text)
    }
}
