// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    /// A host, in small letters and without brackets, and a port if one is named.
    struct HostAndPort {
        let host: String
        let port: Int?

        init(_ text: Substring) {
            let end =
                text.first == "["
                ? text.firstIndex(of: "]").map { text.index(after: $0) } ?? text.endIndex
                : text.firstIndex(of: ":") ?? text.endIndex
            var host = text[..<end]
            if host.first == "[" {
                host = host.dropFirst()
                if host.last == "]" { host = host.dropLast() }
            }
            self.host = host.lowercased()
            port = text[end...].first == ":" ? Int(text[end...].dropFirst()) : nil
        }
    }
#endif
