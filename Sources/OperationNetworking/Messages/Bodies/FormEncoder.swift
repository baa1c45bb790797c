// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

extension RequestBody {
    /// Creates a body that contains the properties of a value as a URL-encoded form, such as `name=Anna&age=7`.
    ///
    /// - Parameters:
    ///   - value: The value to encode. The value must encode into a keyed container, as a structure with synthesized
    ///     `Encodable` conformance and a `[String: …]` dictionary do.
    ///   - encoder: The encoder, whose styles determine the format of arrays, Booleans, dates and other values. The
    ///     default is an encoder with the default styles.
    /// - Throws: A ``NetworkError`` with the code ``NetworkError/Code/bodyNotEncodable`` if the encoder cannot encode
    ///   the value.
    public static func form(
        _ value: some Encodable, encoder: FormEncoder = FormEncoder()
    ) throws(NetworkError) -> RequestBody {
        do {
            return form(text: try encoder.text(of: value))
        } catch {
            throw .unencodable("a form", error)
        }
    }

    /// Creates a body that contains a dictionary with values of different types as a URL-encoded form.
    ///
    /// The form contains the keys in alphabetical order.
    ///
    /// - Parameters:
    ///   - dictionary: The names and values of the form. By default, the encoder omits names whose value is `nil`.
    ///   - encoder: The encoder that creates the text of the form. The default is an encoder with the default styles.
    /// - Throws: A ``NetworkError`` with the code ``NetworkError/Code/bodyNotEncodable`` if the encoder cannot encode a
    ///   value.
    public static func form(
        _ dictionary: [String: Any?], encoder: FormEncoder = FormEncoder()
    ) throws(NetworkError) -> RequestBody {
        do {
            return form(text: try encoder.text(of: dictionary))
        } catch {
            throw .unencodable("a form", error)
        }
    }

    private static func form(text: String) -> RequestBody {
        RequestBody.data(Data(text.utf8)).withContentType("application/x-www-form-urlencoded")
    }
}

/// An encoder that converts values to URL-encoded forms for request bodies and URL queries.
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
/// A form contains the properties in the order in which the value encodes them. If the value is a dictionary, the form
/// contains its keys in alphabetical order.
public struct FormEncoder: Sendable {
    /// The style for the names of array elements in the form.
    ///
    /// The default is ``ArrayStyle/brackets``.
    public var arrays: ArrayStyle
    /// The style for the names of nested values in the form.
    ///
    /// The default is ``NestingStyle/brackets``.
    public var nesting: NestingStyle
    /// The format of Boolean values.
    ///
    /// The default is ``BooleanStyle/words``.
    public var booleans: BooleanStyle
    /// The format of dates.
    ///
    /// The default is ``DateStyle/iso8601``.
    public var dates: DateStyle
    /// The style that converts coding keys to names in the form.
    ///
    /// The default is ``KeyStyle/unchanged``. The style does not apply to the keys of dictionaries.
    public var keys: KeyStyle
    /// The style that determines how the form represents `nil` values.
    ///
    /// The default is ``NilStyle/leftOut``, which omits these values.
    public var nils: NilStyle
    /// The style for spaces, which also determines the characters that the encoder does not percent-encode.
    ///
    /// The default is ``SpaceStyle/plus``.
    public var spaces: SpaceStyle

    /// Creates an encoder with styles for arrays, Booleans, dates, `nil` values and spaces.
    ///
    /// To change the styles for nested values and keys, set ``nesting`` and ``keys`` after you create the encoder.
    ///
    /// - Parameters:
    ///   - arrays: The style for the names of array elements. The default is ``ArrayStyle/brackets``.
    ///   - booleans: The format of Boolean values. The default is ``BooleanStyle/words``.
    ///   - dates: The format of dates. The default is ``DateStyle/iso8601``.
    ///   - nils: The style for `nil` values. The default is ``NilStyle/leftOut``.
    ///   - spaces: The style for spaces. The default is ``SpaceStyle/plus``.
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
        keys = .unchanged
    }

    /// Returns the properties of a value as a URL-encoded form.
    ///
    /// - Throws: A ``NetworkError`` with the code ``NetworkError/Code/bodyNotEncodable`` if the encoder cannot encode
    ///   the value.
    public func encode(_ value: some Encodable) throws(NetworkError) -> String {
        do {
            return try text(of: value)
        } catch {
            throw .unencodable("a form", error)
        }
    }

    package func text(of value: some Encodable) throws(FormEncodingError) -> String {
        FormWriter.text(of: try pairs(of: value), writesPlus: spaces.writesPlus)
    }

    /// Returns the names and values of a form before percent-encoding.
    func pairs(of value: some Encodable) throws(FormEncodingError) -> [FormWriter.Pair] {
        let root = FormNode()
        do {
            try FormValueEncoder(options: self, node: root, codingPath: []).write(value)
        } catch let error as FormEncodingError {
            throw error
        } catch EncodingError.invalidValue(_, let context) {
            throw FormEncodingError(.refusedByValue, at: context.codingPath, context.debugDescription)
        } catch {
            throw FormEncodingError(.refusedByValue, at: [], "A value's encode(to:) threw a \(type(of: error)).")
        }
        return try FormWriter.pairs(of: root, by: self)
    }

    /// Returns a dictionary with values of different types as a URL-encoded form.
    ///
    /// A value of the dictionary can be `nil`, `NSNull`, any `Encodable` value, or an array or a dictionary of these
    /// values.
    package func text(of dictionary: [String: Any?]) throws(FormEncodingError) -> String {
        try text(of: MixedValue(dictionary))
    }
}

extension FormEncoder {
    /// A style for the names of array elements in a form.
    public struct ArrayStyle: Sendable {
        let name: @Sendable (_ name: String, _ index: Int) -> String

        /// A style that adds brackets to the name of the array, as in `tags[]=a&tags[]=b`.
        public static let brackets = ArrayStyle { name, _ in "\(name)[]" }
        /// A style that repeats the name of the array, as in `tags=a&tags=b`.
        public static let repeated = ArrayStyle { name, _ in name }
        /// A style that adds the index of the element to the name of the array, as in `tags[0]=a&tags[1]=b`.
        ///
        /// With this style, a server can distinguish the elements of an array of structures or dictionaries.
        public static let indexed = ArrayStyle { name, index in "\(name)[\(index)]" }

        /// Creates a style that calls a closure to get the name of an array element.
        ///
        /// - Parameter name: A closure that receives the name of the array and the index of the element, and returns
        ///   the name of the element. The encoder calls the closure on the thread that encodes the form.
        public static func custom(_ name: @escaping @Sendable (_ name: String, _ index: Int) -> String) -> ArrayStyle {
            ArrayStyle(name: name)
        }
    }

    /// A style for the names of nested values in a form.
    public struct NestingStyle: Sendable {
        let name: @Sendable (_ outer: String, _ inner: String) -> String

        /// A style that puts the inner name in brackets, as in `user[name]=Anna`.
        public static let brackets = NestingStyle { outer, inner in "\(outer)[\(inner)]" }
        /// A style that separates the names with a dot, as in `user.name=Anna`.
        public static let dots = NestingStyle { outer, inner in "\(outer).\(inner)" }

        /// Creates a style that calls a closure to get the name of a nested value.
        ///
        /// - Parameter name: A closure that receives the name of the outer value and the name of the inner value, and
        ///   returns the combined name. The encoder calls the closure on the thread that encodes the form.
        public static func custom(
            _ name: @escaping @Sendable (_ outer: String, _ inner: String) -> String
        ) -> NestingStyle {
            NestingStyle(name: name)
        }
    }

    /// A style for the text of Boolean values in a form.
    public struct BooleanStyle: Sendable {
        let text: @Sendable (Bool) -> String

        /// A style that writes Boolean values as `true` and `false`.
        public static let words = BooleanStyle { $0 ? "true" : "false" }
        /// A style that writes Boolean values as `1` and `0`.
        public static let numbers = BooleanStyle { $0 ? "1" : "0" }

        /// Creates a style that calls a closure to get the text of a Boolean value.
        ///
        /// - Parameter text: A closure that returns the text of a Boolean value. The encoder calls the closure on the
        ///   thread that encodes the form.
        public static func custom(_ text: @escaping @Sendable (Bool) -> String) -> BooleanStyle {
            BooleanStyle(text: text)
        }
    }

    /// A style for the text of dates in a form.
    public struct DateStyle: Sendable {
        let text: @Sendable (Date) -> String

        /// A style that writes dates in the ISO 8601 format in UTC, as in `2001-02-03T04:05:06Z`, without fractions of
        /// seconds.
        public static let iso8601 = DateStyle { ISO8601Text.text($0) }
        /// A style that writes dates as the number of seconds since 1970, including fractions.
        public static let secondsSince1970 = DateStyle { $0.timeIntervalSince1970.formText }
        /// A style that writes dates as the number of milliseconds since 1970, including fractions.
        public static let millisecondsSince1970 = DateStyle { ($0.timeIntervalSince1970 * 1000).formText }

        /// Creates a style that calls a closure to get the text of a date.
        ///
        /// - Parameter text: A closure that returns the text of a date. The encoder calls the closure on the thread
        ///   that encodes the form.
        public static func custom(_ text: @escaping @Sendable (Date) -> String) -> DateStyle {
            DateStyle(text: text)
        }
    }

    /// A style that converts coding keys to names in a form.
    public struct KeyStyle: Sendable {
        let text: @Sendable (String) -> String

        /// A style that uses the coding keys without changes.
        public static let unchanged = KeyStyle { $0 }
        /// A style that converts coding keys to snake case, for example `baseURLPath` to `base_url_path`.
        public static let snakeCase = KeyStyle { snakeCase($0) }

        /// Creates a style that calls a closure to get the name for a coding key.
        ///
        /// - Parameter text: A closure that receives a coding key and returns the name in the form. The encoder calls
        ///   the closure on the thread that encodes the form.
        public static func custom(_ text: @escaping @Sendable (String) -> String) -> KeyStyle {
            KeyStyle(text: text)
        }

        /// Returns a camel-case name in snake case.
        ///
        /// A word begins at an uppercase letter after a lowercase letter. In a series of uppercase letters, the last
        /// one begins a word if a lowercase letter follows it.
        private static func snakeCase(_ name: String) -> String {
            let letters = Array(name)
            var result = ""
            for (index, letter) in letters.enumerated() {
                let follows = index + 1 < letters.count && letters[index + 1].isLowercase
                if letter.isUppercase, index > 0, letters[index - 1] != "_",
                    !letters[index - 1].isUppercase || follows
                {
                    result += "_"
                }
                result += letter.lowercased()
            }
            return result
        }
    }

    /// A style that determines how a form represents `nil` values.
    ///
    /// The style does not apply to the properties of a type with a synthesized `encode(to:)` method, because that
    /// method omits `nil` values.
    public struct NilStyle: Sendable {
        /// The text of the value, or `nil` to omit the whole pair.
        let text: String?

        /// A style that omits names whose value is `nil`.
        public static let leftOut = NilStyle(text: nil)
        /// A style that writes the name with an empty value, as in `name=`.
        public static let empty = NilStyle(text: "")

        /// Returns a style that writes the name with the given word as the value, as in `name=null`.
        public static func word(_ word: String) -> NilStyle { NilStyle(text: word) }
    }

    /// A style for spaces and for the characters that the encoder does not percent-encode.
    public struct SpaceStyle: Sendable, Hashable {
        let writesPlus: Bool

        /// A style that writes spaces as `+`, as in web forms (WHATWG URL, section 5).
        ///
        /// The encoder does not percent-encode letters, digits or `*-._`.
        public static let plus = SpaceStyle(writesPlus: true)
        /// A style that writes spaces as `%20`, as in URIs (RFC 3986, section 2.3).
        ///
        /// The encoder does not percent-encode letters, digits or `-._~`.
        public static let percent = SpaceStyle(writesPlus: false)
    }
}

/// An error that describes why a ``FormEncoder`` cannot encode a value.
package struct FormEncodingError: Error, Sendable, Hashable {
    /// A code that identifies the kind of encoding failure.
    ///
    /// Future versions may add codes.
    package struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the code, which you can use as a metric label.
        package let description: String

        /// The value does not encode itself with keys, so the encoder cannot write it as names and values.
        package static let notKeyed = Code(description: "notKeyed")
        /// The value contains a number or a date whose value is infinite or NaN.
        package static let notANumber = Code(description: "notANumber")
        /// The value contains more than 256 levels of nested values.
        package static let tooDeep = Code(description: "tooDeep")
        /// The `encode(to:)` method of a value threw an error.
        package static let refusedByValue = Code(description: "refusedByValue")
    }

    /// The code that identifies the kind of failure.
    package let code: Code
    /// The location of the failure in the value, as coding keys that are separated by dots.
    ///
    /// The string is empty if the failure concerns the whole value.
    package let keyPath: String
    /// A message that describes the failure and its solution.
    package let message: String

    init(_ code: Code, at path: [any CodingKey], _ reason: String) {
        self.code = code
        keyPath = path.map(\.stringValue).joined(separator: ".")
        message = keyPath.isEmpty ? reason : "At \(keyPath): \(reason)"
    }
}

extension FormEncodingError: CustomStringConvertible {
    /// The code and the message in one line, for a log.
    package var description: String { "[\(code)] \(message)" }
}

extension FormEncodingError: LocalizedError {
    /// The message of the error, which you can show to a user.
    package var errorDescription: String? { message }
}

/// A writer that converts a tree to pairs, and pairs to text.
struct FormWriter {
    typealias Pair = (name: String, value: String)

    private let options: FormEncoder
    private var pairs: [Pair] = []

    /// Returns the names and values of a tree in their order.
    static func pairs(of root: FormNode, by options: FormEncoder) throws(FormEncodingError) -> [Pair] {
        guard case .keyed(let children) = root.content else {
            throw FormEncodingError(
                .notKeyed, at: [], "A form consists of names and values. Send a value with keys, or a dictionary.")
        }
        var writer = FormWriter(options: options)
        for child in children { writer.write(child.node, name: child.key) }
        return writer.pairs
    }

    private mutating func write(_ node: FormNode, name: String) {
        switch node.content {
        case .empty: break
        case .null:
            if let text = options.nils.text { pairs.append((name, text)) }
        case .text(let text): pairs.append((name, text))
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
