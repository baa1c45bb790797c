// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension HeaderFields.Field: CustomStringConvertible, CustomReflectable {
    /// The name and the value.
    ///
    /// Three stars replace a secret, which is recognized by its name or by the form of its value.
    public var description: String {
        let field = LogRedaction.secrets.printable(self)
        return "\(field.name): \(field.value)"
    }

    /// What debuggers and `dump` show: no secrets.
    public var customMirror: Mirror {
        let field = LogRedaction.secrets.printable(self)
        return Mirror(self, children: ["name": field.name, "value": field.value], displayStyle: .struct)
    }
}

extension HeaderFields: CustomStringConvertible, CustomReflectable {
    /// All fields, without secrets.
    public var description: String { "[\(map(\.description).joined(separator: ", "))]" }

    /// What debuggers and `dump` show: no secrets.
    public var customMirror: Mirror { Mirror(self, unlabeledChildren: Array(self), displayStyle: .collection) }
}
