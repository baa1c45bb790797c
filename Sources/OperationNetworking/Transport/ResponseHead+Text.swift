// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension ResponseHead: CustomStringConvertible, CustomReflectable {
    private var place: String { RequestSummary(method: "GET", url: url).url }

    /// Status, URL and header fields, without secrets.
    public var description: String { "\(status) from \(place) \(headers)" }

    /// What debuggers and `dump` show: no secrets.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "url": place, "status": status, "version": version, "reason": reason.quoted(), "headers": headers,
                "isDecoded": isDecoded,
            ], displayStyle: .struct)
    }
}
