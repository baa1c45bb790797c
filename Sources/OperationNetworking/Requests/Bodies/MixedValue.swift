// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A value of any kind, as dictionaries have them, made `Encodable`: nil, what is `Encodable`, and arrays and dictionaries
/// of such.
struct MixedValue: Encodable {
    /// Deeper than any text that a server would read; and no stack overflows.
    static let deepest = 256

    private let value: Any?

    init(_ value: Any?) {
        self.value = value
    }

    func encode(to encoder: any Encoder) throws {
        func refuse(_ reason: String) -> EncodingError {
            EncodingError.invalidValue(
                value as Any, .init(codingPath: encoder.codingPath, debugDescription: reason))
        }
        guard encoder.codingPath.count <= Self.deepest else {
            throw refuse("It is nested more than \(Self.deepest) levels deep.")
        }
        switch Self.unwrapped(value) {
        case nil, is NSNull:
            var container = encoder.singleValueContainer()
            try container.encodeNil()
        case let value as any Encodable:
            var container = encoder.singleValueContainer()
            try container.encode(value)
        case let list as [Any?]:
            var container = encoder.singleValueContainer()
            try container.encode(list.map(MixedValue.init))
        case let dictionary as [String: Any?]:
            // As a dictionary, and not as a value with keys: its keys are data, which no rule for names changes.
            var container = encoder.singleValueContainer()
            try container.encode(dictionary.mapValues(MixedValue.init))
        case let other?:
            throw refuse("A \(type(of: other)) is not Encodable. Give it as text or number.")
        }
    }

    /// The value without the optionals around it.
    private static func unwrapped(_ value: Any?) -> Any? {
        guard let value else { return nil }
        guard let optional = value as? any AnyOptional else { return value }
        return unwrapped(optional.content)
    }
}

private protocol AnyOptional {
    var content: Any? { get }
}

extension Optional: AnyOptional {
    fileprivate var content: Any? { self }
}
