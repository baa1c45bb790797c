// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The validation of a request before it can be sent.
struct RequestChecks {
    private static let methods: Set = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]
    private static let bodyless: Set = ["GET", "HEAD", "TRACE"]
    /// The headers that concern the connection, the framing or the proxy, and not the resource.
    private static let reserved = [
        "Host", "Connection", "Transfer-Encoding", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Upgrade",
        "TE", "Trailer", "Expect", "HTTP2-Settings",
    ]

    let method: String
    let url: URL

    private func refusal(_ code: NetworkError.Code, _ message: String) -> NetworkError {
        NetworkError(
            code: code, phase: .checking, message: message,
            request: RequestSummary(method: method.isToken ? method : "(no method)", url: url))
    }

    func checkedMethod() throws(NetworkError) -> String {
        if Self.methods.contains(method) { return method }
        guard method.isToken else {
            throw refusal(
                .invalidMethod,
                "The method is empty, or contains a character that is not allowed in methods.")
        }
        let capital = method.uppercased()
        guard capital != "CONNECT" else {
            throw refusal(
                .invalidMethod,
                "The method CONNECT is reserved for proxies. To use a proxy, set it in the session's configuration.")
        }
        return Self.methods.contains(capital) ? capital : method
    }

    /// Returns the URL in the form in which it is sent, which begins with the text of its origin.
    ///
    /// The result also contains the `Authorization` header for the user name and password of the URL, if there are any.
    func checkedURL() throws(NetworkError) -> (url: URL, origin: RequestOrigin, credentials: String?) {
        let written = url.absoluteString
        if let origin = RequestOrigin(ofPlain: written) {
            return (url.baseURL == nil ? url : url.absoluteURL, origin, nil)
        }
        let reference = AddressReference(written)
        guard let scheme = reference.scheme?.asciiLowercased else {
            throw refusal(.invalidURL, "The URL is not absolute. Begin it with https://.")
        }
        guard URLAuthority.defaultPorts[scheme] != nil else {
            throw refusal(.unsupportedScheme, "The scheme \(scheme) is not supported. Use http or https.")
        }
        let authority: URLAuthority
        do {
            authority = try URLAuthority(reference.authority ?? "", writtenBy: .user)
        } catch {
            throw refusal(error, scheme)
        }
        let origin = RequestOrigin(scheme: scheme, authority)
        let text = origin.name + reference.path + (reference.query.map { "?" + $0 } ?? "")
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }), let plain = URL(string: text),
            RequestOrigin(of: plain) == origin
        else {
            throw refusal(.invalidURL, "The URL contains characters that must be percent-encoded.")
        }
        return (plain, origin, authority.userInformation.flatMap(Self.credentials))
    }

    private func refusal(_ flaw: URLAuthority.Flaw, _ scheme: String) -> NetworkError {
        switch flaw {
        case .noHost: refusal(.missingHost, "The URL contains no host. Write a host after \(scheme)://.")
        case .host:
            refusal(
                .invalidURL,
                "The host of the URL is not valid. Write a domain name, an IPv4 address, or an IPv6 address in brackets."
            )
        case .port: refusal(.invalidURL, "The port of the URL is not valid. Use a port from 1 to 65535.")
        }
    }

    /// Returns the `Authorization` header for the user name and the password of a URL, or `nil` if both are empty.
    private static func credentials(_ information: String) -> String? {
        guard !information.isEmpty else { return nil }
        let bytes = Hexadecimal.percentDecoded(Array(information.utf8)[...])
        return "Basic " + Data(information.contains(":") ? bytes : bytes + ":".utf8).base64EncodedString()
    }

    func checkedHeaders(
        _ headers: HeaderFields, _ body: RequestBody
    ) throws(NetworkError) -> (headers: HeaderFields, body: RequestBody) {
        if !body.isNone, Self.bodyless.contains(method.uppercased()) {
            throw refusal(
                .bodyNotAllowed,
                "A request with the method \(method.uppercased()) cannot have a body. "
                    + "Use POST, or send the data in the query.")
        }
        if let length = body.length, length < 0 {
            throw refusal(.bodyLengthMismatch, "The length of the body is negative.")
        }
        var checked = HeaderFields()
        var content = body
        checked.reserveCapacity(headers.count)
        for field in headers {
            let value = try checkedValue(field)
            if field.isNamed("Content-Length") {
                content = try checkedLength(value, content)
            } else {
                checked.add(field.name, value)
            }
        }
        return (checked, content)
    }

    func checkedValue(_ field: HeaderFields.Field) throws(NetworkError) -> String {
        guard field.name.isToken else {
            throw refusal(
                .invalidHeaderName,
                "A header name is empty, or contains a character that is not allowed in header names.")
        }
        guard field.value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
            throw refusal(
                .invalidHeaderValue,
                "The value of \(field.name) contains a line break or another control character. Encode it.")
        }
        guard !Self.reserved.contains(where: { field.isNamed($0) }) else {
            throw refusal(.reservedHeader, "Only the session can set the header \(field.name). Remove the header.")
        }
        return field.value.trimmedBlanks
    }

    private func checkedLength(_ text: String, _ body: RequestBody) throws(NetworkError) -> RequestBody {
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let stated = Int64(text),
            stated == body.length ?? (body.isNone ? 0 : stated)
        else {
            throw refusal(
                .bodyLengthMismatch,
                "Content-Length does not match the length of the body. Remove the header, because the session sets it.")
        }
        return body.isNone ? body : body.withLength(stated)
    }

    func check(_ options: TransferOptions) throws(NetworkError) {
        let timeouts = options.timeouts
        for limit in [timeouts.connect, timeouts.firstByte, timeouts.idle, timeouts.total] {
            if let limit, limit <= .zero {
                throw refusal(
                    .invalidLimit,
                    "A time limit is zero or negative. Set a positive number, or nil for no limit.")
            }
        }
        guard options.maximumHeaderSize > 0, options.maximumExpansion > 0 else {
            throw refusal(.invalidLimit, "A size limit is zero or negative. Set a positive number.")
        }
    }
}

extension String {
    /// Whether the string is a token of RFC 9110, which is not empty and contains only letters, digits and some signs.
    package var isToken: Bool {
        !isEmpty
            && utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x5E...0x7A, 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x7C, 0x7E: true
                default: false
                }
            }
    }

    /// The string without spaces and tabs at both ends.
    package var trimmedBlanks: String {
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        guard let first = utf8.first, let last = utf8.last, isBlank(first) || isBlank(last) else { return self }
        let start = utf8.drop(while: isBlank)
        guard let end = start.lastIndex(where: { !isBlank($0) }) else { return "" }
        return String(start[...end]) ?? self
    }
}
