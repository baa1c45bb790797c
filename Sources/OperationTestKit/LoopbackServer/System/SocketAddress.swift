// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// An address in the form that the system's calls take.
struct SocketAddress {
    private var storage = sockaddr_storage()
    private var length = socklen_t(MemoryLayout<sockaddr_storage>.size)

    /// Nil if a path is empty or too long.
    init?(_ address: LoopbackAddress) {
        switch address.kind {
        case .ipv4:
            var form = sockaddr_in()
            form.sin_family = sa_family_t(AF_INET)
            form.sin_port = address.port.bigEndian
            form.sin_addr = in_addr(s_addr: UInt32(0x7F00_0001).bigEndian)
            set(form)
        case .ipv6:
            var form = sockaddr_in6()
            form.sin6_family = sa_family_t(AF_INET6)
            form.sin6_port = address.port.bigEndian
            withUnsafeMutableBytes(of: &form.sin6_addr) { $0[15] = 1 }
            set(form)
        case .unixSocket(let path):
            var form = sockaddr_un()
            form.sun_family = sa_family_t(AF_UNIX)
            let bytes = Array(path.utf8)
            let room = MemoryLayout.size(ofValue: form.sun_path)
            guard !bytes.isEmpty, bytes.count < room, !bytes.contains(0) else { return nil }
            withUnsafeMutableBytes(of: &form.sun_path) { $0.copyBytes(from: bytes) }
            set(form)
        }
    }

    private init() {}

    /// The address which a socket has.
    static func bound(to file: Int32) -> SocketAddress? {
        var address = SocketAddress()
        let result = withUnsafeMutablePointer(to: &address.storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(file, $0, &address.length) }
        }
        return result == 0 ? address : nil
    }

    /// The port; 0 if it has none.
    var port: UInt16 {
        withUnsafeBytes(of: storage) { bytes in
            // Where it stands in the forms of both IP versions: behind the family.
            UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
        }
    }

    func withPointer<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        withUnsafePointer(to: storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
        }
    }

    private mutating func set<Form>(_ form: Form) {
        withUnsafeBytes(of: form) { bytes in
            withUnsafeMutableBytes(of: &storage) { $0.copyMemory(from: bytes) }
        }
        #if canImport(Darwin)
            storage.ss_len = UInt8(MemoryLayout<Form>.size)
        #endif
        length = socklen_t(MemoryLayout<Form>.size)
    }
}
