// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension HeaderFields.Field: CustomStringConvertible, CustomReflectable {
    /// The name and the value; three stars for a value whose name says that it is a secret.
    public var description: String { "\(name): \(LogRedaction.secrets.value(of: self))" }

    /// What debuggers and `dump` show: no secrets.
    public var customMirror: Mirror {
        Mirror(
            self, children: ["name": name, "value": LogRedaction.secrets.value(of: self)], displayStyle: .struct)
    }
}

extension HeaderFields: CustomStringConvertible, CustomReflectable {
    /// All fields, without secrets.
    public var description: String { "[\(map(\.description).joined(separator: ", "))]" }

    /// What debuggers and `dump` show: no secrets.
    public var customMirror: Mirror { Mirror(self, unlabeledChildren: Array(self), displayStyle: .collection) }
}
