// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

extension RequestBody {
    /// The JSON of a value.
    ///
    /// ```swift
    /// struct Greeting: Encodable { var text = "Hello" }
    /// let body = try RequestBody.json(Greeting())
    /// ```
    ///
    /// - Parameters:
    ///   - value: What is sent.
    ///   - encoder: Writes it; set what you need (dates, keys) before. Without one the keys come in alphabetical order, so
    ///     that the same value always gives the same bytes: a server that knows a request by its key compares them.
    public static func json(
        _ value: some Encodable, encoder: JSONEncoder = .sorting
    ) throws(NetworkError) -> RequestBody {
        do {
            return RequestBody.data(try encoder.encode(value)).withContentType("application/json")
        } catch {
            throw .unencodable("JSON", error)
        }
    }

    /// The JSON of a dictionary whose values are of different kinds.
    ///
    /// The values are nil or `NSNull`, anything that is `Encodable`, and arrays and dictionaries of such. The keys come in
    /// alphabetical order, so that the same dictionary always gives the same bytes, unless an encoder is given.
    public static func json(
        _ dictionary: [String: Any?], encoder: JSONEncoder? = nil
    ) throws(NetworkError) -> RequestBody {
        try json(MixedValue(dictionary), encoder: encoder ?? .sorting)
    }
}

extension JSONEncoder {
    /// A new one that writes the same bytes for the same value.
    @usableFromInline static var sorting: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return encoder
    }
}

extension NetworkError {
    /// A value could not be written: says at which place in it, as far as that is known, and never what stands there.
    static func unencodable(_ format: String, _ error: any Error) -> NetworkError {
        var reason = "one of its values refused."
        if case .invalidValue(let value, let context)? = error as? EncodingError {
            let place = context.codingPath.map(\.stringValue).joined(separator: ".")
            reason = (place.isEmpty ? "" : "at \(place): ") + Self.refusal(of: value)
        } else if let error = error as? FormEncodingError {
            reason = error.message
        }
        var failure = NetworkError(
            code: .bodyNotEncodable, phase: .checking, message: "The body cannot be written as \(format): \(reason)",
            underlying: .init(domain: "\(type(of: error))", number: 0, text: reason))
        failure.cause = error
        return failure
    }

    /// By its type: the words of the error may have the value in them.
    private static func refusal(of value: Any) -> String {
        let isFinite =
            switch value {
            case let number as Double: number.isFinite
            case let number as Float: number.isFinite
            default: true
            }
        return isFinite
            ? "a value of the type \(type(of: value)) cannot be written." : "a number is infinite or none at all."
    }
}
