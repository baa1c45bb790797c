// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension HeaderFields {
    /// One name and its value.
    public struct Field: Sendable {
        /// The name as it was written.
        public let name: String
        /// The value.
        public let value: String

        /// Makes a field, which is checked when a request is made of it.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }

        /// Whether the field has that name, in whatever case.
        public func isNamed(_ other: String) -> Bool {
            name.isSameHeaderName(as: other)
        }
    }
}

extension HeaderFields.Field: Hashable {
    /// Fields are the same when their values are, and their names but for the case.
    public static func == (left: Self, right: Self) -> Bool {
        left.isNamed(right.name) && left.value == right.value
    }

    /// Adds the name without its case, and the value.
    public func hash(into hasher: inout Hasher) {
        for byte in name.utf8 { hasher.combine(byte.loweredASCII) }
        hasher.combine(value)
    }
}

extension String {
    /// Whether both are the same but for the case of ASCII letters.
    package func isSameHeaderName(as other: String) -> Bool {
        guard utf8.count == other.utf8.count else { return false }
        return utf8.withContiguousStorageIfAvailable { left in
            other.utf8.withContiguousStorageIfAvailable { UnsafeRawBufferPointer($0).isSameName(as: .init(left)) }
        }.flatMap { $0 } ?? utf8.elementsEqual(other.utf8) { $0 == $1 || $0.loweredASCII == $1.loweredASCII }
    }
}

extension UnsafeRawBufferPointer {
    /// Whether both are the same but for the case of ASCII letters.
    package func isSameName(as other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        for index in 0..<count where self[index] != other[index] {
            guard self[index].loweredASCII == other[index].loweredASCII else { return false }
        }
        return true
    }
}

extension UInt8 {
    /// The byte with a capital letter of ASCII made small.
    package var loweredASCII: UInt8 { (0x41...0x5A).contains(self) ? self | 0x20 : self }
}
