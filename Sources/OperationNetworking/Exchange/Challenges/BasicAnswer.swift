// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The answer to a `Basic` challenge (RFC 7617), in UTF-8.
package enum BasicAnswer {
    /// The value of the `Authorization` field; nil where the name has a colon in it, or either a control character.
    package static func make(user: String, password: String) -> String? {
        let isWritable = !user.utf8.contains(UInt8(ascii: ":")) && !(user + password).utf8.contains(where: \.isControl)
        guard isWritable else { return nil }
        return "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
    }
}
