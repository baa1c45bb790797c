// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension ResponseHead {
    /// The head that Foundation gives: fields of one name are joined, their order is lost, version and words are not told.
    init?(_ response: HTTPURLResponse, to request: NetworkRequest) {
        guard (100...999).contains(response.statusCode) else { return nil }
        var fields = HeaderFields()
        let pairs = response.allHeaderFields.compactMap { name, value in
            (name as? String).map { (name: $0, value: "\(value)") }
        }
        for (name, value) in pairs.sorted(by: { $0.name < $1.name }) {
            guard !name.utf8.contains(where: \.isControl) else { return nil }
            fields.add(name, value.withoutControls.trimmedBlanks)
        }
        // Foundation decompresses whatever it knows, asked or not.
        let codings = fields.values("Content-Encoding").flatMap { $0.split(separator: ",") }
            .map { String($0).trimmedBlanks.lowercased() }
        let isDecoded = codings.contains { !$0.isEmpty && $0 != "identity" }
        self.init(
            url: request.url, status: response.statusCode, headers: fields,
            isDecoded: isDecoded && response.statusCode >= 200)
    }
}
