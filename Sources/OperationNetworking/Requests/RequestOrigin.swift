// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Scheme, host and port: whose connections a request shares.
package struct RequestOrigin: Sendable, Hashable {
    /// In small letters, as in a URL.
    package let name: String

    /// Whether it is reached by TLS.
    package var isSecure: Bool { name.utf8.dropFirst(4).first == UInt8(ascii: "s") }

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
        var text = text
        guard let name = text.withUTF8({ PlainAuthority(UnsafeRawBufferPointer($0))?.origin }) else { return nil }
        self.name = name
    }
}

/// The scheme, the host and the port of a URL of the simplest kind, as bytes.
private struct PlainAuthority {
    private let bytes: UnsafeRawBufferPointer
    private let usualPort: Int
    /// Where the host ends, and the port if there is one.
    private var hostEnd: Int
    private var end: Int
    private var port: Int?
    private var hasCapitals = false

    init?(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
        let isSecure = bytes.begins(with: "https://")
        guard isSecure || bytes.begins(with: "http://") else { return nil }
        usualPort = isSecure ? 443 : 80
        let start = isSecure ? 8 : 7
        (hostEnd, end) = (start, start)
        readHost()
        guard hostEnd > start, readPort(), end == bytes.count || bytes[end] == 0x2F || bytes[end] == 0x3F,
            bytes[end...].allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x23 })
        else { return nil }
    }

    private mutating func readHost() {
        while hostEnd < bytes.count {
            switch bytes[hostEnd] {
            case 0x30...0x39, 0x61...0x7A, 0x2D, 0x2E: break
            case 0x41...0x5A: hasCapitals = true
            default: return end = hostEnd
            }
            hostEnd += 1
        }
        end = hostEnd
    }

    private mutating func readPort() -> Bool {
        guard hostEnd < bytes.count, bytes[hostEnd] == 0x3A else { return true }
        var number = 0
        end = hostEnd + 1
        while end < bytes.count, (0x30...0x39).contains(bytes[end]), number <= 65535 {
            number = number * 10 + Int(bytes[end]) - 0x30
            end += 1
        }
        port = number
        return (1...65535).contains(number)
    }

    /// In small letters, without the usual port.
    var origin: String {
        let nameEnd = port == usualPort ? hostEnd : end
        let name = String(decoding: UnsafeRawBufferPointer(rebasing: bytes[..<nameEnd]), as: UTF8.self)
        return hasCapitals ? name.lowercased() : name
    }
}

extension UnsafeRawBufferPointer {
    fileprivate func begins(with text: StaticString) -> Bool {
        let length = text.utf8CodeUnitCount
        return count >= length
            && UnsafeRawBufferPointer(rebasing: self[..<length]).elementsEqual(
                UnsafeBufferPointer(start: text.utf8Start, count: length))
    }
}
