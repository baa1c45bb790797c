// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

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
