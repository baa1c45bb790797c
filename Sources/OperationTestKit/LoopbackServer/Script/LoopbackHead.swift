// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The status line and the header fields of an answer, right or wrong.
public struct LoopbackHead: Hashable, Sendable {
    /// The version that is sent.
    public var version = "HTTP/1.1"
    /// The status.
    public var status: Int
    /// The words behind the status.
    public var reason: String
    /// The fields in the order in which they are sent.
    public var fields: [LoopbackField]

    /// Makes a head; nothing is checked, and nothing is added to it.
    ///
    /// - Parameters:
    ///   - status: The status.
    ///   - fields: The fields, in order, the same name as often as wished.
    ///   - reason: The words behind the status; the usual ones if nil.
    public init(_ status: Int, _ fields: [LoopbackField] = [], reason: String? = nil) {
        self.status = status
        self.fields = fields
        self.reason = reason ?? Self.usualReason(status)
    }

    /// The head as it is sent.
    public var bytes: [UInt8] {
        var text = "\(version) \(status) \(reason)\r\n"
        for field in fields { text += "\(field.name): \(field.value)\r\n" }
        text += "\r\n"
        return Array(text.utf8)
    }

    /// Whether the client can know where the body ends, other than by the end of the connection.
    var delimitsBody: Bool {
        if status < 200 || status == 204 || status == 304 { return true }
        return fields.first("Content-Length") != nil || fields.first("Transfer-Encoding") != nil
    }

    var closes: Bool { fields.first("Connection")?.lowercased().contains("close") == true }

    private static func usualReason(_ status: Int) -> String {
        switch status {
        case 100: "Continue"
        case 101: "Switching Protocols"
        case 103: "Early Hints"
        case 200: "OK"
        case 201: "Created"
        case 204: "No Content"
        case 206: "Partial Content"
        case 301: "Moved Permanently"
        case 302: "Found"
        case 303: "See Other"
        case 304: "Not Modified"
        case 307: "Temporary Redirect"
        case 308: "Permanent Redirect"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 407: "Proxy Authentication Required"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 412: "Precondition Failed"
        case 413: "Content Too Large"
        case 416: "Range Not Satisfiable"
        case 429: "Too Many Requests"
        case 500: "Internal Server Error"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        default: "Status \(status)"
        }
    }
}
