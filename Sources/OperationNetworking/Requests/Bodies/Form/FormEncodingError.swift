// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

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
