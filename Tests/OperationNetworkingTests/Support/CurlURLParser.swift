// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation

    /// The URL parser of the installed libcurl.
    struct CurlURLParser {
        /// The destination of a request.
        struct Place: Hashable, CustomStringConvertible {
            var scheme: String
            /// A name in ASCII, four decimal numbers, or the 16 bytes of an IPv6 address in decimal.
            var host: String
            var zone: String
            var port: String

            var description: String { "\(scheme) \(host)\(zone.isEmpty ? "" : " in \(zone)") \(port)" }
        }

        private typealias Get =
            @convention(c) (
                OpaquePointer?, Int32, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, UInt32
            ) -> Int32

        private let make: @convention(c) () -> OpaquePointer?
        private let cleanUp: @convention(c) (OpaquePointer?) -> Void
        private let set: @convention(c) (OpaquePointer?, Int32, UnsafePointer<CChar>?, UInt32) -> Int32
        private let get: Get
        private let free: @convention(c) (UnsafeMutableRawPointer?) -> Void

        // `CURLUPART_…` and `CURLU_…` of curl/urlapi.h.
        private enum Part: Int32 {
            case url = 0, scheme = 1, host = 5, port = 6, zone = 10
        }
        private static let pathAsIs: UInt32 = 1 << 4
        private static let defaultPort: UInt32 = 1 << 0
        private static let punycode: UInt32 = 1 << 12

        /// Returns `nil` without libcurl.
        init?() {
            guard let library = dlopen("libcurl.so.4", RTLD_NOW), let make = dlsym(library, "curl_url"),
                let cleanUp = dlsym(library, "curl_url_cleanup"), let set = dlsym(library, "curl_url_set"),
                let get = dlsym(library, "curl_url_get"), let free = dlsym(library, "curl_free")
            else { return nil }
            self.make = unsafeBitCast(make, to: (@convention(c) () -> OpaquePointer?).self)
            self.cleanUp = unsafeBitCast(cleanUp, to: (@convention(c) (OpaquePointer?) -> Void).self)
            self.set = unsafeBitCast(
                set, to: (@convention(c) (OpaquePointer?, Int32, UnsafePointer<CChar>?, UInt32) -> Int32).self)
            self.get = unsafeBitCast(get, to: Get.self)
            self.free = unsafeBitCast(free, to: (@convention(c) (UnsafeMutableRawPointer?) -> Void).self)
        }

        /// Returns how libcurl reads a URL, or `nil` if libcurl rejects it or cannot express the host in ASCII.
        func place(of text: String) -> Place? {
            // libidn2 reads the text in the encoding of the locale, which is changed for this thread only.
            let locale = newlocale(1 << LC_CTYPE, "C.UTF-8", nil)
            let before = uselocale(locale)
            defer {
                _ = uselocale(before)
                if let locale { freelocale(locale) }
            }
            guard let url = make() else { return nil }
            defer { cleanUp(url) }
            guard set(url, Part.url.rawValue, text, Self.pathAsIs) == 0, let scheme = part(.scheme, of: url),
                let host = part(.host, of: url, Self.punycode), host.utf8.allSatisfy({ $0 < 0x80 }),
                let port = part(.port, of: url, Self.defaultPort)
            else { return nil }
            return Place(
                scheme: scheme.lowercased(), host: Self.written(host), zone: part(.zone, of: url) ?? "", port: port)
        }

        private func part(_ part: Part, of url: OpaquePointer, _ flags: UInt32 = 0) -> String? {
            var text: UnsafeMutablePointer<CChar>?
            guard get(url, part.rawValue, &text, flags) == 0, let text else { return nil }
            defer { free(text) }
            return String(cString: text)
        }

        /// Parses the address with functions of the system, which are independent of the library.
        private static func written(_ host: String) -> String {
            var (four, six) = (in_addr(), in6_addr())
            if host.hasPrefix("["), inet_pton(AF_INET6, String(host.dropFirst().dropLast()), &six) == 1 {
                return withUnsafeBytes(of: six) { bytes in bytes.map { "\($0)" }.joined(separator: " ") }
            }
            if inet_aton(host, &four) != 0 {
                return withUnsafeBytes(of: four) { bytes in bytes.map { "\($0)" }.joined(separator: ".") }
            }
            return host.lowercased()
        }
    }
#endif
