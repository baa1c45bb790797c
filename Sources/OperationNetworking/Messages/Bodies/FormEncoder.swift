// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

extension RequestBody {
    /// Creates a body with the URL-encoded form of a value, such as `name=Anna&age=7`.
    ///
    /// - Parameters:
    ///   - value: The value to encode, which must have keys.
    ///   - encoder: The encoder, which determines how arrays, Booleans, dates and other values are written.
    /// - Throws: A ``NetworkError`` with the code ``NetworkError/Code/bodyNotEncodable`` if the value cannot be
    ///   encoded.
    public static func form(
        _ value: some Encodable, encoder: FormEncoder = FormEncoder()
    ) throws(NetworkError) -> RequestBody {
        do {
            return form(text: try encoder.encode(value))
        } catch {
            throw .unencodable("a form", error)
        }
    }

    /// Creates a body with the URL-encoded form of a dictionary whose values have different types.
    ///
    /// The keys are in alphabetical order.
    ///
    /// - Throws: A ``NetworkError`` with the code ``NetworkError/Code/bodyNotEncodable`` if a value cannot be encoded.
    public static func form(
        _ dictionary: [String: Any?], encoder: FormEncoder = FormEncoder()
    ) throws(NetworkError) -> RequestBody {
        do {
            return form(text: try encoder.encode(dictionary))
        } catch {
            throw .unencodable("a form", error)
        }
    }

    private static func form(text: String) -> RequestBody {
        RequestBody.data(Data(text.utf8)).withContentType("application/x-www-form-urlencoded")
    }
}

/// An encoder that writes values as URL-encoded forms, for request bodies and for the queries of URLs.
///
/// ```swift
/// struct Search: Encodable {
///     var text: String
///     var tags: [String]
/// }
///
/// let encoder = FormEncoder(arrays: .repeated)
/// print(try encoder.encode(Search(text: "red & blue", tags: ["a", "b"])))
/// // text=red+%26+blue&tags=a&tags=b
/// ```
///
/// The pairs are in the order in which the value encodes them. The pairs of a dictionary are in the alphabetical order
/// of its keys.
public struct FormEncoder: Sendable {
    /// The style for the names of array elements.
    ///
    /// The default is ``ArrayStyle/brackets``: `tags[]`.
    public var arrays: ArrayStyle
    /// The style for the names of nested values.
    ///
    /// The default is ``NestingStyle/brackets``: `user[name]`.
    public var nesting: NestingStyle
    /// The style for Booleans.
    ///
    /// The default is ``BooleanStyle/words``: `true` and `false`.
    public var booleans: BooleanStyle
    /// The style for dates.
    ///
    /// The default is ``DateStyle/iso8601``: `2001-02-03T04:05:06Z`.
    public var dates: DateStyle
    /// The style for bytes.
    ///
    /// The default is ``DataStyle/base64``.
    public var data: DataStyle
    /// The style for the names of coding keys.
    ///
    /// The default is ``KeyStyle/unchanged``. The style does not apply to the keys of dictionaries.
    public var keys: KeyStyle
    /// The style for `nil` values.
    ///
    /// The default is ``NilStyle/leftOut``, which omits them.
    public var nils: NilStyle
    /// The style for spaces, which also determines the characters that are not percent-encoded.
    ///
    /// The default is ``SpaceStyle/plus``.
    public var spaces: SpaceStyle

    /// Creates an encoder.
    ///
    /// You can set the styles for nested values, bytes and keys afterward.
    public init(
        arrays: ArrayStyle = .brackets, booleans: BooleanStyle = .words, dates: DateStyle = .iso8601,
        nils: NilStyle = .leftOut, spaces: SpaceStyle = .plus
    ) {
        self.arrays = arrays
        self.booleans = booleans
        self.dates = dates
        self.nils = nils
        self.spaces = spaces
        nesting = .brackets
        data = .base64
        keys = .unchanged
    }

    /// Returns a value as a URL-encoded form.
    ///
    /// - Throws: A ``FormEncodingError`` if the value cannot be encoded.
    public func encode(_ value: some Encodable) throws(FormEncodingError) -> String {
        FormWriter.text(of: try pairs(of: value), writesPlus: spaces.writesPlus)
    }

    /// Returns the names and values of a form before percent-encoding.
    func pairs(of value: some Encodable) throws(FormEncodingError) -> [FormWriter.Pair] {
        let root = FormNode()
        do {
            try FormValueEncoder(self, node: root, path: []).write(value)
        } catch let error as FormEncodingError {
            throw error
        } catch EncodingError.invalidValue(_, let context) {
            throw FormEncodingError(.refusedByValue, at: context.codingPath, context.debugDescription)
        } catch {
            throw FormEncodingError(.refusedByValue, at: [], "A value failed to encode itself: \(type(of: error)).")
        }
        return try FormWriter.pairs(of: root, by: self)
    }

    /// Returns a dictionary whose values have different types as a URL-encoded form.
    ///
    /// A value can be `nil`, `NSNull`, any `Encodable` value, or an array or a dictionary of these.
    ///
    /// - Throws: A ``FormEncodingError`` if a value cannot be encoded.
    public func encode(_ dictionary: [String: Any?]) throws(FormEncodingError) -> String {
        try encode(MixedValue(dictionary))
    }
}

extension FormEncoder {
    /// A style for the names of array elements.
    public struct ArrayStyle: Sendable {
        let name: @Sendable (_ name: String, _ index: Int) -> String

        /// A style that adds brackets to the name, as in PHP and Rails: `tags[]=a&tags[]=b`.
        public static let brackets = ArrayStyle { name, _ in "\(name)[]" }
        /// A style that repeats the name, as in Java, Go and Python: `tags=a&tags=b`.
        public static let repeated = ArrayStyle { name, _ in name }
        /// A style that adds the index to the name, which keeps the elements of an array of keyed values apart:
        /// `tags[0]=a&tags[1]=b`.
        public static let indexed = ArrayStyle { name, index in "\(name)[\(index)]" }

        /// Creates a style from a closure that returns the name of an element.
        public static func custom(_ name: @escaping @Sendable (_ name: String, _ index: Int) -> String) -> ArrayStyle {
            ArrayStyle(name: name)
        }
    }

    /// A style for the names of nested values.
    public struct NestingStyle: Sendable {
        let name: @Sendable (_ outer: String, _ inner: String) -> String

        /// A style with brackets: `user[name]=Anna`.
        public static let brackets = NestingStyle { outer, inner in "\(outer)[\(inner)]" }
        /// A style with dots: `user.name=Anna`.
        public static let dots = NestingStyle { outer, inner in "\(outer).\(inner)" }

        /// Creates a style from a closure that returns the name of a nested value.
        public static func custom(
            _ name: @escaping @Sendable (_ outer: String, _ inner: String) -> String
        ) -> NestingStyle {
            NestingStyle(name: name)
        }
    }

    /// A style for Booleans.
    public struct BooleanStyle: Sendable {
        let text: @Sendable (Bool) -> String

        /// A style that writes `true` and `false`.
        public static let words = BooleanStyle { $0 ? "true" : "false" }
        /// A style that writes `1` and `0`.
        public static let numbers = BooleanStyle { $0 ? "1" : "0" }

        /// Creates a style from a closure that returns the text of a Boolean.
        public static func custom(_ text: @escaping @Sendable (Bool) -> String) -> BooleanStyle {
            BooleanStyle(text: text)
        }
    }

    /// A style for dates.
    public struct DateStyle: Sendable {
        let text: @Sendable (Date) -> String

        /// A style that writes whole seconds in UTC: `2001-02-03T04:05:06Z`.
        public static let iso8601 = DateStyle { ISO8601Text.text($0) }
        /// A style that writes the seconds since 1970, with a fraction if there is one.
        public static let secondsSince1970 = DateStyle { FormNumber.text($0.timeIntervalSince1970) }
        /// A style that writes the milliseconds since 1970, with a fraction if there is one.
        public static let millisecondsSince1970 = DateStyle { FormNumber.text($0.timeIntervalSince1970 * 1000) }

        /// Creates a style from a closure that returns the text of a date.
        public static func custom(_ text: @escaping @Sendable (Date) -> String) -> DateStyle {
            DateStyle(text: text)
        }
    }

    /// A style for bytes.
    public struct DataStyle: Sendable {
        let text: @Sendable (Data) -> String

        /// A style that writes Base64.
        public static let base64 = DataStyle { $0.base64EncodedString() }

        /// Creates a style from a closure that returns the text of bytes.
        public static func custom(_ text: @escaping @Sendable (Data) -> String) -> DataStyle {
            DataStyle(text: text)
        }
    }

    /// A style for the names of coding keys.
    public struct KeyStyle: Sendable {
        let text: @Sendable (String) -> String

        /// A style that does not change the names.
        public static let unchanged = KeyStyle { $0 }
        /// A style that writes `firstName` as `first_name`, and `baseURLPath` as `base_url_path`.
        public static let snakeCase = KeyStyle { SnakeCase.text($0) }

        /// Creates a style from a closure that returns the new name of a key.
        public static func custom(_ text: @escaping @Sendable (String) -> String) -> KeyStyle {
            KeyStyle(text: text)
        }
    }

    /// A style for `nil` values.
    ///
    /// An `encode(to:)` method that the compiler synthesizes omits `nil` properties, so the style does not apply to
    /// them.
    public struct NilStyle: Sendable {
        /// The text of the value, or `nil` to omit the whole pair.
        let text: String?

        /// A style that omits the name and the value.
        public static let leftOut = NilStyle(text: nil)
        /// A style that writes an empty value: `name=`.
        public static let empty = NilStyle(text: "")

        /// Returns a style that writes a word as the value: `name=word`.
        public static func word(_ word: String) -> NilStyle { NilStyle(text: word) }
    }

    /// A style for spaces and for the characters that are not percent-encoded.
    public struct SpaceStyle: Sendable, Hashable {
        let writesPlus: Bool

        /// A style that writes spaces as `+`, as web forms do (WHATWG URL, section 5).
        ///
        /// Letters, digits and `*-._` are not percent-encoded.
        public static let plus = SpaceStyle(writesPlus: true)
        /// A style that writes spaces as `%20`, as URIs do (RFC 3986, section 2.3).
        ///
        /// Letters, digits and `-._~` are not percent-encoded.
        public static let percent = SpaceStyle(writesPlus: false)
    }
}

/// An error that describes why a value cannot be encoded as a form.
public struct FormEncodingError: Error, Sendable, Hashable {
    /// A code that identifies the kind of a failure.
    ///
    /// Future versions may add codes.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the code, suitable as a metric label.
        public let description: String

        /// The value has no keys, but a form consists of names and values.
        public static let notKeyed = Code(description: "notKeyed")
        /// A number or a date is infinite or not a number.
        public static let notANumber = Code(description: "notANumber")
        /// The value is nested more than 256 levels deep.
        public static let tooDeep = Code(description: "tooDeep")
        /// The `encode(to:)` method of a value failed.
        public static let refusedByValue = Code(description: "refusedByValue")
    }

    /// The kind of the failure.
    public let code: Code
    /// The position in the value, as keys separated by dots.
    ///
    /// The string is empty if the problem concerns the whole value.
    public let keyPath: String
    /// A sentence that describes the failure and what to do about it.
    public let message: String

    init(_ code: Code, at path: [any CodingKey], _ reason: String) {
        self.code = code
        keyPath = path.map(\.stringValue).joined(separator: ".")
        message = keyPath.isEmpty ? reason : "At \(keyPath): \(reason)"
    }
}

extension FormEncodingError: CustomStringConvertible {
    /// One line for a log, with the code and the message.
    public var description: String { "[\(code)] \(message)" }
}

extension FormEncodingError: LocalizedError {
    /// A sentence to show to the user.
    public var errorDescription: String? { message }
}

/// A writer that converts a tree to pairs, and pairs to text.
struct FormWriter {
    struct Pair: Equatable {
        let name: String
        let value: String
    }

    private let options: FormEncoder
    private var pairs: [Pair] = []

    private init(_ options: FormEncoder) {
        self.options = options
    }

    /// Returns the names and values of a tree in their order.
    static func pairs(of root: FormNode, by options: FormEncoder) throws(FormEncodingError) -> [Pair] {
        guard case .keyed(let children) = root.content else {
            throw FormEncodingError(
                .notKeyed, at: [], "A form consists of names and values. Send a value with keys, or a dictionary.")
        }
        var writer = FormWriter(options)
        for child in children { writer.write(child.node, name: child.key) }
        return writer.pairs
    }

    private mutating func write(_ node: FormNode, name: String) {
        switch node.content {
        case .empty: break
        case .null:
            if let text = options.nils.text { pairs.append(Pair(name: name, value: text)) }
        case .text(let text): pairs.append(Pair(name: name, value: text))
        case .list(let nodes):
            for (index, node) in nodes.enumerated() { write(node, name: options.arrays.name(name, index)) }
        case .keyed(let children):
            for child in children { write(child.node, name: options.nesting.name(name, child.key)) }
        }
    }

    /// Returns the percent-encoded pairs.
    static func text(of pairs: [Pair], writesPlus: Bool) -> String {
        var bytes: [UInt8] = []
        for pair in pairs {
            if !bytes.isEmpty { bytes.append(UInt8(ascii: "&")) }
            append(pair.name, to: &bytes, writesPlus)
            bytes.append(UInt8(ascii: "="))
            append(pair.value, to: &bytes, writesPlus)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func append(_ text: String, to bytes: inout [UInt8], _ writesPlus: Bool) {
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
                bytes.append(byte)
            case UInt8(ascii: "*") where writesPlus, UInt8(ascii: "~") where !writesPlus: bytes.append(byte)
            case 0x20 where writesPlus: bytes.append(UInt8(ascii: "+"))
            default:
                bytes.append(UInt8(ascii: "%"))
                bytes += Hexadecimal.upper(byte)
            }
        }
    }
}
