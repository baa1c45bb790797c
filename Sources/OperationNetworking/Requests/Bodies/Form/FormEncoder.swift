// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

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
