// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension NetworkRequest: CustomStringConvertible, CustomReflectable {
    /// Method, URL and header fields, without secrets.
    public var description: String { "\(summary) \(headers)" }

    /// What debuggers and `dump` show: no secrets, and not the body.
    public var customMirror: Mirror {
        Mirror(
            self, children: ["method": method, "url": summary.url, "headers": headers, "options": options],
            displayStyle: .struct)
    }
}
