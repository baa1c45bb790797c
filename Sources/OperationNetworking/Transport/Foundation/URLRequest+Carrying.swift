// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension URLRequest {
    /// Long enough for our own limits to come first; Foundation on Linux traps where it is much larger.
    static let longInterval: TimeInterval = 1_000_000

    /// The request in Foundation's form, without its body; `others` are fields that it gets unless it has them.
    init(carrying request: NetworkRequest, adding others: HeaderFields) {
        self.init(url: request.url)
        httpMethod = request.method
        for field in request.headers { addValue(field.value, forHTTPHeaderField: field.name) }
        for field in others where !request.headers.contains(field.name) {
            setValue(field.value, forHTTPHeaderField: field.name)
        }
        if !request.options.decodesContent, value(forHTTPHeaderField: "Accept-Encoding") == nil {
            setValue("identity", forHTTPHeaderField: "Accept-Encoding")
        }
        // A jar above the session has the last word.
        if request.headers.contains("Cookie") { httpShouldHandleCookies = false }
        timeoutInterval = Self.longInterval
    }
}

extension HeaderFields {
    /// The fields that a session's configuration adds to each request, as far as they can be sent.
    init(fieldsOf configuration: URLSessionConfiguration) {
        self.init()
        for (name, value) in configuration.httpAdditionalHeaders ?? [:] {
            guard let name = name as? String, let value = value as? String, let url = URL(string: "http://localhost/"),
                let checked = try? NetworkRequest(url: url, headers: [name: value]).headers
            else { continue }
            for field in checked { add(field.name, field.value) }
        }
    }
}
