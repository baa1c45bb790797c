// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// One header field: of a request as it came, or of an answer as it is sent.
public struct LoopbackField: Hashable, Sendable, CustomStringConvertible {
    /// The name as it was written.
    public var name: String
    /// The value without the blanks around it.
    public var value: String

    /// Makes a field; nothing is checked, so that a server can send what is wrong.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// The field as it stands in a head.
    public var description: String { "\(name): \(value)" }
}

extension [LoopbackField] {
    /// The values of all fields with this name, in their order; upper and lower case are the same.
    public func values(_ name: String) -> [String] {
        let wanted = name.lowercased()
        return filter { $0.name.utf8.count == wanted.utf8.count && $0.name.lowercased() == wanted }.map(\.value)
    }

    /// The value of the first field with this name.
    public func first(_ name: String) -> String? { values(name).first }

    /// Puts a field where the first of this name stands, or at the end, in the place of all of that name.
    public mutating func set(_ name: String, _ value: String) {
        let wanted = name.lowercased()
        let place = firstIndex { $0.name.lowercased() == wanted } ?? endIndex
        removeAll { $0.name.lowercased() == wanted }
        insert(LoopbackField(name, value), at: place)
    }
}
