// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

extension RequestBody {
    /// The URL-encoded form of a value: `name=Anna&age=7`.
    ///
    /// - Parameters:
    ///   - value: What is sent: something with keys.
    ///   - encoder: Says how arrays, Booleans, dates and the like are written.
    public static func form(
        _ value: some Encodable, encoder: FormEncoder = FormEncoder()
    ) throws(NetworkError) -> RequestBody {
        do {
            return form(text: try encoder.encode(value))
        } catch {
            throw .unencodable("a form", error)
        }
    }

    /// The URL-encoded form of a dictionary whose values are of different kinds, its keys in alphabetical order.
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

/// Writes values as URL-encoded forms: for bodies, and for the queries of URLs.
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
/// The pairs come in the order in which the value gives them; those of a dictionary in the alphabetical order of its keys.
public struct FormEncoder: Sendable {
    /// How the names of an array's elements are written: `tags[]`.
    public var arrays: ArrayStyle
    /// How the names of a value within a value are written: `user[name]`.
    public var nesting: NestingStyle
    /// How Booleans are written: `true` and `false`.
    public var booleans: BooleanStyle
    /// How dates are written: `2001-02-03T04:05:06Z`.
    public var dates: DateStyle
    /// How bytes are written: in Base64.
    public var data: DataStyle
    /// What becomes of the program's names of keys; those of dictionaries stay as they are: they stay, too.
    public var keys: KeyStyle
    /// What becomes of nil: it is left out.
    public var nils: NilStyle
    /// How spaces are written, and with them the rest: as plus signs.
    public var spaces: SpaceStyle

    /// Makes an encoder with the stated defaults.
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

    /// Writes a value.
    public func encode(_ value: some Encodable) throws(FormEncodingError) -> String {
        FormWriter.text(of: try pairs(of: value), writesPlus: spaces.writesPlus)
    }

    /// The names and values of a form, not yet percent-encoded.
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

    /// Writes a dictionary whose values are of different kinds: nil or `NSNull`, anything that is `Encodable`, and arrays
    /// and dictionaries of such.
    public func encode(_ dictionary: [String: Any?]) throws(FormEncodingError) -> String {
        try encode(MixedValue(dictionary))
    }
}

extension FormEncoder {
    /// How the name of an array's element is written.
    public struct ArrayStyle: Sendable {
        let name: @Sendable (_ name: String, _ index: Int) -> String

        /// `tags[]=a&tags[]=b`: PHP, Rails.
        public static let brackets = ArrayStyle { name, _ in "\(name)[]" }
        /// `tags=a&tags=b`: Java, Go, Python.
        public static let repeated = ArrayStyle { name, _ in name }
        /// `tags[0]=a&tags[1]=b`: arrays of values with keys can be told apart.
        public static let indexed = ArrayStyle { name, index in "\(name)[\(index)]" }

        /// Another way.
        public static func custom(_ name: @escaping @Sendable (_ name: String, _ index: Int) -> String) -> ArrayStyle {
            ArrayStyle(name: name)
        }
    }

    /// How the name of a value within a value is written.
    public struct NestingStyle: Sendable {
        let name: @Sendable (_ outer: String, _ inner: String) -> String

        /// `user[name]=Anna`.
        public static let brackets = NestingStyle { outer, inner in "\(outer)[\(inner)]" }
        /// `user.name=Anna`.
        public static let dots = NestingStyle { outer, inner in "\(outer).\(inner)" }

        /// Another way.
        public static func custom(
            _ name: @escaping @Sendable (_ outer: String, _ inner: String) -> String
        ) -> NestingStyle {
            NestingStyle(name: name)
        }
    }

    /// How Booleans are written.
    public struct BooleanStyle: Sendable {
        let text: @Sendable (Bool) -> String

        /// `true` and `false`.
        public static let words = BooleanStyle { $0 ? "true" : "false" }
        /// `1` and `0`.
        public static let numbers = BooleanStyle { $0 ? "1" : "0" }

        /// Another way.
        public static func custom(_ text: @escaping @Sendable (Bool) -> String) -> BooleanStyle {
            BooleanStyle(text: text)
        }
    }

    /// How dates are written.
    public struct DateStyle: Sendable {
        let text: @Sendable (Date) -> String

        /// `2001-02-03T04:05:06Z`, in whole seconds.
        public static let iso8601 = DateStyle { ISO8601Text.text($0) }
        /// Seconds since 1970, with a fraction if there is one.
        public static let secondsSince1970 = DateStyle { FormNumber.text($0.timeIntervalSince1970) }
        /// Milliseconds since 1970, with a fraction if there is one.
        public static let millisecondsSince1970 = DateStyle { FormNumber.text($0.timeIntervalSince1970 * 1000) }

        /// Another way.
        public static func custom(_ text: @escaping @Sendable (Date) -> String) -> DateStyle {
            DateStyle(text: text)
        }
    }

    /// How bytes are written.
    public struct DataStyle: Sendable {
        let text: @Sendable (Data) -> String

        /// In Base64.
        public static let base64 = DataStyle { $0.base64EncodedString() }

        /// Another way.
        public static func custom(_ text: @escaping @Sendable (Data) -> String) -> DataStyle {
            DataStyle(text: text)
        }
    }

    /// What becomes of the program's names of keys.
    public struct KeyStyle: Sendable {
        let text: @Sendable (String) -> String

        /// They stay.
        public static let unchanged = KeyStyle { $0 }
        /// `firstName` becomes `first_name`, and `baseURLPath` becomes `base_url_path`.
        public static let snakeCase = KeyStyle { SnakeCase.text($0) }

        /// Another way.
        public static func custom(_ text: @escaping @Sendable (String) -> String) -> KeyStyle {
            KeyStyle(text: text)
        }
    }

    /// What becomes of nil.
    ///
    /// An optional property of a type that encodes itself as the compiler wrote it is left out before anybody is asked.
    public struct NilStyle: Sendable {
        /// What stands in its place; the whole pair is left out if nil.
        let text: String?

        /// It is left out, name and all.
        public static let leftOut = NilStyle(text: nil)
        /// `name=`.
        public static let empty = NilStyle(text: "")

        /// `name=word`.
        public static func word(_ word: String) -> NilStyle { NilStyle(text: word) }
    }

    /// How spaces are written, and which characters stay as they are.
    public struct SpaceStyle: Sendable, Hashable {
        let writesPlus: Bool

        /// As forms of the web are: `+`, and letters, digits and `*-._` stay as they are (WHATWG URL, section 5).
        public static let plus = SpaceStyle(writesPlus: true)
        /// As URIs are: `%20`, and letters, digits and `-._~` stay as they are (RFC 3986, section 2.3).
        public static let percent = SpaceStyle(writesPlus: false)
    }
}

/// Why a value cannot be written as a form.
public struct FormEncodingError: Error, Sendable, Hashable {
    /// The kind of the failure; new ones may be added.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the kind, fit for a metric's label.
        public let description: String

        /// The value has no keys: a form is made of names and values.
        public static let notKeyed = Code(description: "notKeyed")
        /// A number is infinite or none at all.
        public static let notANumber = Code(description: "notANumber")
        /// It is nested deeper than 256 levels.
        public static let tooDeep = Code(description: "tooDeep")
        /// The value's own `encode(to:)` failed.
        public static let refusedByValue = Code(description: "refusedByValue")
    }

    /// The kind of the failure.
    public let code: Code
    /// Where in the value, as keys with dots between them; empty for the value itself.
    public let keyPath: String
    /// What happened, and what to do about it.
    public let message: String

    init(_ code: Code, at path: [any CodingKey], _ reason: String) {
        self.code = code
        keyPath = path.map(\.stringValue).joined(separator: ".")
        message = keyPath.isEmpty ? reason : "At \(keyPath): \(reason)"
    }
}

extension FormEncodingError: CustomStringConvertible {
    /// One line for a log: the kind and the sentence.
    public var description: String { "[\(code)] \(message)" }
}

extension FormEncodingError: LocalizedError {
    /// The sentence to show to a person.
    public var errorDescription: String? { message }
}

/// Makes pairs of a tree, and text of pairs.
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

    /// The names and values of a tree, in its order.
    static func pairs(of root: FormNode, by options: FormEncoder) throws(FormEncodingError) -> [Pair] {
        guard case .keyed(let children) = root.content else {
            throw FormEncodingError(
                .notKeyed, at: [], "A form is made of names and values. Send something with keys, or a dictionary.")
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

    /// The pairs, percent-encoded.
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
