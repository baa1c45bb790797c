// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

extension RequestBody {
    /// Creates a body that contains the properties of a value as a URL-encoded form, such as `name=Anna&age=7`.
    ///
    /// - Parameters:
    ///   - value: The value to encode. The value must encode into a keyed container, as a structure with synthesized
    ///     `Encodable` conformance and a `[String: …]` dictionary do.
    ///   - encoder: The encoder, which determines the format of arrays, Booleans, dates and other values. The default
    ///     is an encoder with the default settings.
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
    ///   - encoder: The encoder that creates the text of the form. The default is an encoder with the default settings.
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
/// var encoder = FormEncoder()
/// encoder.arrayName = { name, _ in name }
/// print(try encoder.encode(Search(text: "red & blue", tags: ["a", "b"])))
/// // text=red+%26+blue&tags=a&tags=b
/// ```
///
/// A form contains the properties in the order in which the value encodes them. If the value is a dictionary, the form
/// contains its keys in alphabetical order. The encoder calls its closures on the thread that encodes the form.
public struct FormEncoder: Sendable {
    /// A closure that returns the name of an array element.
    ///
    /// The closure receives the name of the array and the index of the element. The default closure adds brackets to
    /// the name of the array, as in `tags[]=a&tags[]=b`. To write `tags=a&tags=b`, return the name of the array. If you
    /// also write the index, a server can distinguish the elements of an array of structures or dictionaries.
    public var arrayName: @Sendable (_ name: String, _ index: Int) -> String = { name, _ in "\(name)[]" }
    /// A closure that returns the name of a nested value.
    ///
    /// The closure receives the name of the outer value and the name of the inner value. The default closure puts the
    /// inner name in brackets, as in `user[name]=Anna`.
    public var nestedName: @Sendable (_ outer: String, _ inner: String) -> String = { "\($0)[\($1)]" }
    /// A closure that returns the text of a Boolean value.
    ///
    /// The default closure returns `true` or `false`.
    public var boolean: @Sendable (Bool) -> String = { "\($0)" }
    /// A closure that returns the text of a date.
    ///
    /// The default closure returns the date in the ISO 8601 format in UTC, as in `2001-02-03T04:05:06Z`, without
    /// fractions of seconds.
    public var date: @Sendable (Date) -> String = { ISO8601Text.text($0) }
    /// A closure that returns the name in the form for a coding key.
    ///
    /// The default closure returns the coding key. To convert coding keys to snake case, set the property to
    /// ``snakeCase(_:)``. The encoder does not call the closure for the keys of dictionaries.
    public var key: @Sendable (String) -> String = { $0 }
    /// The text of `nil` values.
    ///
    /// The default is `nil`, which omits these values. The text does not apply to the properties of a type with a
    /// synthesized `encode(to:)` method, because that method omits `nil` values.
    public var nilText: String?
    /// A Boolean value that indicates whether the encoder writes a space as `+` instead of `%20`.
    ///
    /// The default is `true`, as in web forms (WHATWG URL, section 5). The encoder then does not percent-encode
    /// letters, digits or `*-._`. If the value is `false`, the encoder does not percent-encode letters, digits or
    /// `-._~`, as in URIs (RFC 3986, section 2.3).
    public var writesSpacesAsPlus = true

    /// Creates an encoder with the default settings.
    public init() {}

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
        Self.text(of: try pairs(of: value), writesPlus: writesSpacesAsPlus)
    }

    /// Returns the names and values of a form before percent-encoding.
    func pairs(of value: some Encodable) throws(FormEncodingError) -> [Pair] {
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
        guard case .keyed(let children) = root.content else {
            throw FormEncodingError(
                .notKeyed, at: [], "A form consists of names and values. Send a value with keys, or a dictionary.")
        }
        var pairs: [Pair] = []
        for child in children { try append(child.node, name: child.key, to: &pairs) }
        return pairs
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
    /// Returns a camel-case name in snake case, for example `base_url_path` for `baseURLPath`.
    ///
    /// A word begins at an uppercase letter after a lowercase letter. In a series of uppercase letters, the last one
    /// begins a word if a lowercase letter follows it.
    public static func snakeCase(_ name: String) -> String {
        let letters = Array(name)
        var result = ""
        for (index, letter) in letters.enumerated() {
            let follows = index + 1 < letters.count && letters[index + 1].isLowercase
            if letter.isUppercase, index > 0, letters[index - 1] != "_", !letters[index - 1].isUppercase || follows {
                result += "_"
            }
            result += letter.lowercased()
        }
        return result
    }
}

/// An error that describes why a ``FormEncoder`` cannot encode a value.
package struct FormEncodingError: Error, Sendable, Hashable {
    /// A code that identifies the kind of encoding failure.
    package enum Code: Sendable {
        /// The value does not encode itself with keys, so the encoder cannot write it as names and values.
        case notKeyed
        /// The value contains a number or a date whose value is infinite or NaN.
        case notANumber
        /// The value contains more than 256 levels of nested values.
        case tooDeep
        /// The `encode(to:)` method of a value threw an error.
        case refusedByValue
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

    static func tooDeep(at path: [any CodingKey]) -> FormEncodingError {
        FormEncodingError(.tooDeep, at: path, "The value is nested more than \(MixedValue.deepest) levels deep.")
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

// The tree of a value is converted to pairs, and the pairs to text.
extension FormEncoder {
    typealias Pair = (name: String, value: String)

    /// Appends the names and values of a tree in their order.
    private func append(_ node: FormNode, name: String, to pairs: inout [Pair]) throws(FormEncodingError) {
        if node.isTooDeep { throw .tooDeep(at: []) }
        switch node.content {
        case .empty: break
        case .null:
            if let text = nilText { pairs.append((name, text)) }
        case .text(let text): pairs.append((name, text))
        case .list(let nodes):
            for (index, node) in nodes.enumerated() { try append(node, name: arrayName(name, index), to: &pairs) }
        case .keyed(let children):
            for child in children { try append(child.node, name: nestedName(name, child.key), to: &pairs) }
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
