// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// An ordered list of the headers of a request or a response.
///
/// The comparison of names is not case-sensitive. A list can contain several headers with the same name. OperationKit
/// does not join the values of these headers with commas, because the values of some headers, such as `Set-Cookie`,
/// contain commas.
public struct HeaderFields: Sendable, Hashable {
    private var fields: [Field]

    /// Creates an empty list of headers.
    public init() {
        fields = []
    }

    /// Creates a list of headers from a sequence, in the same order.
    public init(_ fields: some Sequence<Field>) {
        self.fields = Array(fields)
    }

    /// The value of the first header with the given name, or `nil` if there is no such header.
    ///
    /// Setting a value replaces all headers with that name. Setting `nil` removes them.
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

    /// Returns the values of all headers with the given name, in the order of the list.
    ///
    /// - Parameter name: The name of the headers, which is not case-sensitive.
    public func values(_ name: String) -> [String] {
        fields.lazy.filter { $0.isNamed(name) }.map(\.value)
    }

    /// Returns a Boolean value that indicates whether the list contains a header with the given name.
    ///
    /// - Parameter name: The name of the header, which is not case-sensitive.
    public func contains(_ name: String) -> Bool {
        self[name] != nil
    }

    /// Adds a header to the end of the list without replacing headers that have the same name.
    ///
    /// - Parameters:
    ///   - name: The name of the header.
    ///   - value: The value of the header. The method does not validate the name or the value.
    public mutating func add(_ name: String, _ value: String) {
        fields.append(Field(name, value))
    }

    /// Removes all headers with the given name from the list.
    ///
    /// - Parameter name: The name of the headers, which is not case-sensitive.
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
    /// The index of the first header in the list.
    public var startIndex: Int { 0 }

    /// The index after the last header in the list.
    public var endIndex: Int { fields.count }

    /// Returns the header at an index of the list.
    public subscript(position: Int) -> Field { fields[position] }
}

extension HeaderFields: ExpressibleByDictionaryLiteral {
    /// Creates a list of headers from a dictionary literal, in the order of the literal.
    public init(dictionaryLiteral elements: (String, String)...) {
        fields = elements.map { Field($0, $1) }
    }
}

extension HeaderFields {
    /// A single header, which consists of a name and a value.
    public struct Field: Sendable {
        /// The name of the header, in its original case.
        public let name: String
        /// The value of the header.
        public let value: String

        /// Creates a header from a name and a value, without validating them.
        ///
        /// The initializer of a ``NetworkRequest`` with this header validates the name and the value.
        ///
        /// - Parameters:
        ///   - name: The name of the header, whose case is preserved.
        ///   - value: The value of the header.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }

        /// Returns a Boolean value that indicates whether the header has the given name, without regard to case.
        package func isNamed(_ other: String) -> Bool {
            name.isSameHeaderName(as: other)
        }
    }
}

extension HeaderFields.Field: Hashable {
    /// Returns a Boolean value that indicates whether two headers have the same value and the same name, without regard
    /// to the case of the name.
    public static func == (left: Self, right: Self) -> Bool {
        left.isNamed(right.name) && left.value == right.value
    }

    /// Hashes the lowercase name and the value of the header.
    public func hash(into hasher: inout Hasher) {
        for byte in name.utf8 { hasher.combine(byte.loweredASCII) }
        hasher.combine(value)
    }
}

extension String {
    /// Returns whether both strings are equal without regard to the case of ASCII letters.
    package func isSameHeaderName(as other: String) -> Bool {
        guard utf8.count == other.utf8.count else { return false }
        // `withUTF8` would have to copy both strings.
        return utf8.withContiguousStorageIfAvailable { left in
            other.utf8.withContiguousStorageIfAvailable { UnsafeRawBufferPointer($0).isSameName(as: .init(left)) }
        }.flatMap { $0 } ?? utf8.elementsEqual(other.utf8) { $0 == $1 || $0.loweredASCII == $1.loweredASCII }
    }
}

extension UnsafeRawBufferPointer {
    /// Returns whether the buffer begins with a text, whose case matters.
    func begins(with text: StaticString) -> Bool {
        let length = text.utf8CodeUnitCount
        guard count >= length else { return false }
        return self[..<length].elementsEqual(UnsafeBufferPointer(start: text.utf8Start, count: length))
    }

    /// Returns whether both buffers are equal without regard to the case of ASCII letters.
    package func isSameName(as other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        for index in 0..<count where self[index] != other[index] {
            guard self[index].loweredASCII == other[index].loweredASCII else { return false }
        }
        return true
    }
}

extension UInt8 {
    /// The byte, with an uppercase ASCII letter converted to lowercase.
    package var loweredASCII: UInt8 { (0x41...0x5A).contains(self) ? self | 0x20 : self }
}

extension HeaderFields.Field: CustomStringConvertible, CustomReflectable {
    /// The name and the value of the header as text, without secrets.
    ///
    /// If the name indicates a secret, three asterisks replace the value. In any other value, three asterisks replace
    /// the queries and fragments of URLs and each secret that has a recognizable format.
    public var description: String {
        let field = LogRedaction.secrets.printable(self)
        return "\(field.name): \(field.value)"
    }

    /// A mirror without secrets, for debuggers and `dump`.
    public var customMirror: Mirror {
        let field = LogRedaction.secrets.printable(self)
        return Mirror(self, children: ["name": field.name, "value": field.value], displayStyle: .struct)
    }
}

extension HeaderFields: CustomStringConvertible, CustomReflectable {
    /// The headers of the list as text, without secrets.
    public var description: String { "[\(map(\.description).joined(separator: ", "))]" }

    /// A mirror without secrets, for debuggers and `dump`.
    public var customMirror: Mirror { Mirror(self, unlabeledChildren: Array(self), displayStyle: .collection) }
}
