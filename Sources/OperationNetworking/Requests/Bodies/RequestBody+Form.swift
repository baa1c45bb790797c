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
