// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The header fields of a request or a response, in their order.
///
/// Names are compared without regard to case. A name may occur several times, and each of its values stays a field of
/// its own: values are never joined, because some of them (`Set-Cookie`) have commas in them.
public struct HeaderFields: Sendable, Hashable {
    private var fields: [Field]

    /// Makes an empty list.
    public init() {
        fields = []
    }

    /// Makes a list of fields, kept in their order.
    public init(_ fields: some Sequence<Field>) {
        self.fields = Array(fields)
    }

    /// The value of the first field of that name; setting it replaces all fields of that name, and nil removes them.
    public subscript(name: String) -> String? {
        get { fields.first { $0.isNamed(name) }?.value }
        set {
            guard let newValue else { return remove(name) }
            guard let first = fields.firstIndex(where: { $0.isNamed(name) }) else { return add(name, newValue) }
            fields[first] = Field(name, newValue)
            var index = 0
            fields.removeAll { field in
                defer { index += 1 }
                return index > first && field.isNamed(name)
            }
        }
    }

    /// The values of all fields of that name, in their order.
    public func values(_ name: String) -> [String] {
        fields.lazy.filter { $0.isNamed(name) }.map(\.value)
    }

    /// Whether there is a field of that name.
    public func contains(_ name: String) -> Bool {
        fields.contains { $0.isNamed(name) }
    }

    /// Adds a field at the end, beside those of the same name.
    public mutating func add(_ name: String, _ value: String) {
        fields.append(Field(name, value))
    }

    /// Removes all fields of that name.
    public mutating func remove(_ name: String) {
        fields.removeAll { $0.isNamed(name) }
    }

    package mutating func reserveCapacity(_ count: Int) {
        fields.reserveCapacity(count)
    }

    package mutating func removeLast() -> Field? {
        fields.popLast()
    }
}

extension HeaderFields: RandomAccessCollection {
    /// The place of the first field.
    public var startIndex: Int { 0 }

    /// The place after the last field.
    public var endIndex: Int { fields.count }

    /// The field at a place.
    public subscript(position: Int) -> Field { fields[position] }
}

extension HeaderFields: ExpressibleByDictionaryLiteral {
    /// Makes a list of the names and values, in the order in which they are written; a name may occur several times.
    public init(dictionaryLiteral elements: (String, String)...) {
        fields = elements.map { Field($0, $1) }
    }
}
