// Foundation's extensions of strings, and character sets.

// https://developer.apple.com/documentation/foundation/characterset
public struct CharacterSet: Equatable, Hashable, SetAlgebra, Sendable {
    public typealias Element = Unicode.Scalar
    public typealias ArrayLiteralElement = Unicode.Scalar
    public init() {}
    public init(charactersIn string: __shared String) {}
    public init(charactersIn range: Range<Unicode.Scalar>) {}
    public init(charactersIn range: ClosedRange<Unicode.Scalar>) {}
    public static var controlCharacters: CharacterSet { fatalError() }
    public static var whitespaces: CharacterSet { fatalError() }
    public static var whitespacesAndNewlines: CharacterSet { fatalError() }
    public static var newlines: CharacterSet { fatalError() }
    public static var decimalDigits: CharacterSet { fatalError() }
    public static var letters: CharacterSet { fatalError() }
    public static var alphanumerics: CharacterSet { fatalError() }
    public static var punctuationCharacters: CharacterSet { fatalError() }
    public static var urlUserAllowed: CharacterSet { fatalError() }
    public static var urlPasswordAllowed: CharacterSet { fatalError() }
    public static var urlHostAllowed: CharacterSet { fatalError() }
    public static var urlPathAllowed: CharacterSet { fatalError() }
    public static var urlQueryAllowed: CharacterSet { fatalError() }
    public static var urlFragmentAllowed: CharacterSet { fatalError() }
    public var inverted: CharacterSet { fatalError() }
    public func contains(_ member: Unicode.Scalar) -> Bool { fatalError() }
    public mutating func insert(charactersIn string: String) {}
    public mutating func remove(charactersIn string: String) {}
    @discardableResult
    public mutating func insert(_ character: Unicode.Scalar) -> (inserted: Bool, memberAfterInsert: Unicode.Scalar) {
        fatalError()
    }
    @discardableResult public mutating func update(with character: Unicode.Scalar) -> Unicode.Scalar? { fatalError() }
    @discardableResult public mutating func remove(_ character: Unicode.Scalar) -> Unicode.Scalar? { fatalError() }
    public func union(_ other: CharacterSet) -> CharacterSet { fatalError() }
    public mutating func formUnion(_ other: CharacterSet) {}
    public func intersection(_ other: CharacterSet) -> CharacterSet { fatalError() }
    public mutating func formIntersection(_ other: CharacterSet) {}
    public func symmetricDifference(_ other: CharacterSet) -> CharacterSet { fatalError() }
    public mutating func formSymmetricDifference(_ other: CharacterSet) {}
    public func hash(into hasher: inout Hasher) {}
    public static func == (lhs: CharacterSet, rhs: CharacterSet) -> Bool { fatalError() }
}

// https://developer.apple.com/documentation/swift/string/encoding
extension String {
    public struct Encoding: RawRepresentable, Sendable, Equatable {
        public var rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public static let ascii = Encoding(rawValue: 1)
        public static let nextstep = Encoding(rawValue: 2)
        public static let japaneseEUC = Encoding(rawValue: 3)
        public static let utf8 = Encoding(rawValue: 4)
        public static let isoLatin1 = Encoding(rawValue: 5)
        public static let symbol = Encoding(rawValue: 6)
        public static let nonLossyASCII = Encoding(rawValue: 7)
        public static let shiftJIS = Encoding(rawValue: 8)
        public static let isoLatin2 = Encoding(rawValue: 9)
        public static let unicode = Encoding(rawValue: 10)
        public static let windowsCP1251 = Encoding(rawValue: 11)
        public static let windowsCP1252 = Encoding(rawValue: 12)
        public static let windowsCP1253 = Encoding(rawValue: 13)
        public static let windowsCP1254 = Encoding(rawValue: 14)
        public static let windowsCP1250 = Encoding(rawValue: 15)
        public static let iso2022JP = Encoding(rawValue: 21)
        public static let macOSRoman = Encoding(rawValue: 30)
        public static let utf16 = Encoding(rawValue: 10)
        public static let utf16BigEndian = Encoding(rawValue: 0x90000100)
        public static let utf16LittleEndian = Encoding(rawValue: 0x94000100)
        public static let utf32 = Encoding(rawValue: 0x8c000100)
        public static let utf32BigEndian = Encoding(rawValue: 0x98000100)
        public static let utf32LittleEndian = Encoding(rawValue: 0x9c000100)
    }
    public typealias CompareOptions = NSString.CompareOptions
}
extension String.Encoding: Hashable, CustomStringConvertible {
    public var description: String { fatalError() }
}

// https://developer.apple.com/documentation/swift/string/init(data:encoding:)
extension String {
    public init?(data: __shared Data, encoding: Encoding) { fatalError() }
    public init?<S: Sequence>(bytes: __shared S, encoding: Encoding) where S.Iterator.Element == UInt8 { fatalError() }
    public init(contentsOfFile path: __shared String, encoding enc: Encoding) throws { fatalError() }
    public init(contentsOf url: __shared URL, encoding enc: Encoding) throws { fatalError() }
    public func data(using encoding: Encoding, allowLossyConversion: Bool = false) -> Data? { fatalError() }
}

// https://developer.apple.com/documentation/swift/string/init(format:_:)
extension String {
    public init(format: __shared String, _ arguments: any CVarArg...) { fatalError() }
    public init(format: __shared String, arguments: __shared [any CVarArg]) { fatalError() }
    public init(format: __shared String, locale: __shared Locale?, _ args: any CVarArg...) { fatalError() }
}

// https://developer.apple.com/documentation/swift/stringprotocol
extension StringProtocol {
    public var capitalized: String { fatalError() }
    public var removingPercentEncoding: String? { fatalError() }
    public func addingPercentEncoding(withAllowedCharacters allowedCharacters: CharacterSet) -> String? { fatalError() }
    public func contains<T: StringProtocol>(_ other: T) -> Bool { fatalError() }
    public func localizedCaseInsensitiveContains<T: StringProtocol>(_ other: T) -> Bool { fatalError() }
    public func caseInsensitiveCompare<T: StringProtocol>(_ aString: T) -> ComparisonResult { fatalError() }
    public func compare<T: StringProtocol>(
        _ aString: T, options mask: String.CompareOptions = [], range: Range<Index>? = nil, locale: Locale? = nil
    ) -> ComparisonResult { fatalError() }
    public func components<T: StringProtocol>(separatedBy separator: T) -> [String] { fatalError() }
    public func components(separatedBy separator: CharacterSet) -> [String] { fatalError() }
    public func data(using encoding: String.Encoding, allowLossyConversion: Bool = false) -> Data? { fatalError() }
    public func range<T: StringProtocol>(
        of aString: T, options mask: String.CompareOptions = [], range searchRange: Range<Index>? = nil,
        locale: Locale? = nil
    ) -> Range<Index>? { fatalError() }
    public func rangeOfCharacter(
        from aSet: CharacterSet, options mask: String.CompareOptions = [], range aRange: Range<Index>? = nil
    ) -> Range<Index>? { fatalError() }
    public func replacingCharacters<T: StringProtocol, R: RangeExpression>(in range: R, with replacement: T) -> String
    where R.Bound == String.Index { fatalError() }
    public func replacingOccurrences<Target: StringProtocol, Replacement: StringProtocol>(
        of target: Target, with replacement: Replacement, options: String.CompareOptions = [],
        range searchRange: Range<Index>? = nil
    ) -> String { fatalError() }
    public func trimmingCharacters(in set: CharacterSet) -> String { fatalError() }
    public func padding<T: StringProtocol>(toLength newLength: Int, withPad padString: T, startingAt padIndex: Int) -> String {
        fatalError()
    }
    public func write<T: StringProtocol>(
        toFile path: T, atomically useAuxiliaryFile: Bool, encoding enc: String.Encoding
    ) throws {}
    public func write(to url: URL, atomically useAuxiliaryFile: Bool, encoding enc: String.Encoding) throws {}
}

// https://developer.apple.com/documentation/foundation/decimal
extension Decimal: @unchecked Sendable {}
extension Decimal: Hashable, Comparable, CustomStringConvertible, Codable {
    public init(_ value: Int) { self.init() }
    public init(_ value: Double) { self.init() }
    public init?(string: __shared String, locale: __shared Locale? = nil) { self.init() }
    public var isFinite: Bool { fatalError() }
    public var isNaN: Bool { fatalError() }
    public var isZero: Bool { fatalError() }
    public var isSignMinus: Bool { fatalError() }
    public var description: String { fatalError() }
    public func hash(into hasher: inout Hasher) {}
    public static func == (lhs: Decimal, rhs: Decimal) -> Bool { fatalError() }
    public static func < (lhs: Decimal, rhs: Decimal) -> Bool { fatalError() }
    public init(from decoder: any Decoder) throws { self.init() }
    public func encode(to encoder: any Encoder) throws {}
}
extension Decimal: ExpressibleByFloatLiteral, ExpressibleByIntegerLiteral {
    public init(floatLiteral value: Double) { self.init() }
    public init(integerLiteral value: Int) { self.init() }
}
