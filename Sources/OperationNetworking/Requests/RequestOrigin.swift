// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Scheme, host and port: whose connections a request shares.
package struct RequestOrigin: Sendable, Hashable {
    /// In small letters, as in a URL.
    package let name: String

    /// Whether it is reached by TLS.
    package var isSecure: Bool { name.utf8.starts(with: "https".utf8) }

    private init(_ name: String) {
        // With the usual port and without it is one place.
        let usualPort = name.utf8.starts(with: "https".utf8) ? ":443" : ":80"
        self.name = name.hasSuffix(usualPort) ? String(name.dropLast(usualPort.count)) : name
    }

    init(scheme: String, encodedHost host: String, port: Int?) {
        let place = port.map { ":\($0)" } ?? ""
        self.init("\(scheme)://\(host.lowercased())\(place)")
    }

    /// The origin of the text of a URL that can be sent as it is; nil if it must be looked at more closely.
    ///
    /// It saves most requests the expense of taking the URL apart.
    package init?(ofPlain text: String) {
        let bytes = text.utf8
        guard let start = Self.afterScheme(bytes) else { return nil }
        let rest = bytes[start...]
        let end = rest.firstIndex { $0 == 0x2F || $0 == 0x3F } ?? rest.endIndex
        let authority = rest[..<end]
        guard !authority.isEmpty, Self.isPlain(authority),
            rest[end...].allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x23 })
        else { return nil }
        self.init(text[..<end].lowercased())
    }

    private static func afterScheme(_ bytes: String.UTF8View) -> String.Index? {
        for scheme in ["http://", "https://"] where bytes.starts(with: scheme.utf8) {
            return bytes.index(bytes.startIndex, offsetBy: scheme.utf8.count)
        }
        return nil
    }

    /// Whether the host, and the port if there is one, are of the simplest kind.
    private static func isPlain(_ authority: Substring.UTF8View) -> Bool {
        let colon = authority.firstIndex(of: 0x3A)
        let host = authority[..<(colon ?? authority.endIndex)]
        let isSimple = host.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E: true
            default: false
            }
        }
        guard isSimple, !host.isEmpty else { return false }
        guard let colon else { return true }
        let port = authority[authority.index(after: colon)...]
        return Int(Substring(port)).map { (1...65535).contains($0) } ?? false
    }
}
