// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension HTTPURLResponse {
    /// The head as Foundation has it: fields of the same name are joined by commas.
    convenience init?(_ head: ResponseHead) {
        var fields: [String: String] = [:]
        fields.reserveCapacity(head.headers.count)
        for field in head.headers {
            guard let known = fields.updateValue(field.value, forKey: field.name) else { continue }
            fields[field.name] = "\(known), \(field.value)"
        }
        self.init(
            url: head.url, statusCode: head.status, httpVersion: head.version.description, headerFields: fields)
    }
}
