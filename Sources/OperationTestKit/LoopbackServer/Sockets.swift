// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The socket functions of the system, without blocking, without signals, and with descriptors that are not
/// inherited.
enum Sockets {
    /// Creates a listening socket, and returns it with its assigned port.
    static func listen(
        on address: LoopbackAddress, options: LoopbackServer.Options
    ) throws(LoopbackServerError) -> (descriptor: Int32, address: LoopbackAddress) {
        let file = try open(address)
        do throws(LoopbackServerError) {
            // Accepted connections inherit the sizes, which must be set before a connection is established.
            if let size = options.receiveBufferSize { setOption(file, SOL_SOCKET, SO_RCVBUF, Int32(clamping: size)) }
            if let size = options.sendBufferSize { setOption(file, SOL_SOCKET, SO_SNDBUF, Int32(clamping: size)) }
            try bindAndListen(file, address, backlog: options.backlog)
            guard case .unixSocket = address.kind else {
                return (file, address.with(port: try boundPort(file, address)))
            }
            return (file, address)
        } catch {
            close(file)
            throw error
        }
    }

    /// Accepts a connection, and returns nil if there is none, with `failed` if the system has no free descriptor.
    static func accept(_ file: Int32) -> (descriptor: Int32?, failed: Bool) {
        let connection = acceptConnection(file)
        guard connection >= 0 else { return (nil, errno == EMFILE || errno == ENFILE) }
        setOption(connection, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        #if canImport(Darwin)
            setOption(connection, SOL_SOCKET, SO_NOSIGPIPE, 1)
        #endif
        return (connection, false)
    }

    /// Receives bytes and returns their number, which is 0 if no bytes have arrived, or nil if the connection has
    /// ended.
    static func receive(_ file: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        while true {
            let count = recv(file, buffer.baseAddress, buffer.count, 0)
            if count >= 0 { return count > 0 ? count : nil }
            if errno == EINTR { continue }
            return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : nil
        }
    }

    /// Sends bytes and returns their number, which is 0 if the system has no room, or nil if the connection has
    /// ended.
    static func send(_ file: Int32, _ bytes: UnsafeRawBufferPointer) -> Int? {
        while true {
            #if canImport(Darwin)
                let count = Foundation.send(file, bytes.baseAddress, bytes.count, 0)
            #else
                let count = Foundation.send(file, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
            #endif
            if count >= 0 { return count }
            if errno == EINTR { continue }
            return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : nil
        }
    }

    static func closeSending(_ file: Int32) { _ = shutdown(file, Int32(SHUT_WR)) }

    static func close(_ file: Int32) { _ = Foundation.close(file) }

    /// Closes a connection in a way that the other side sees as a reset.
    static func reset(_ file: Int32) {
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(file, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
        close(file)
    }

    /// Creates a pipe with non-blocking ends.
    static func makePipe() -> (reading: Int32, writing: Int32)? {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return nil }
        for end in ends { prepare(end) }
        return (ends[0], ends[1])
    }

    private static func open(_ address: LoopbackAddress) throws(LoopbackServerError) -> Int32 {
        let family =
            switch address.kind {
            case .ipv4: AF_INET
            case .ipv6: AF_INET6
            case .unixSocket: AF_UNIX
            }
        #if canImport(Darwin)
            let file = socket(family, SOCK_STREAM, 0)
        #else
            let file = socket(family, Int32(socket: SOCK_STREAM) | Int32(socket: SOCK_CLOEXEC), 0)
        #endif
        guard file >= 0 else { throw LoopbackServerError(errno, address) }
        prepare(file)
        // A server that is started again must be able to use the port of the last one.
        setOption(file, SOL_SOCKET, SO_REUSEADDR, 1)
        if address.kind == .ipv6 { setOption(file, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 1) }
        return file
    }

    private static func bindAndListen(
        _ file: Int32, _ address: LoopbackAddress, backlog: Int
    ) throws(LoopbackServerError) {
        guard let storage = SocketAddress(address) else {
            throw LoopbackServerError(code: .invalidPath, address: address, systemErrorNumber: 0)
        }
        guard storage.withPointer({ bind(file, $0, $1) }) == 0, Foundation.listen(file, Int32(clamping: backlog)) == 0
        else { throw LoopbackServerError(errno, address) }
    }

    private static func boundPort(
        _ file: Int32, _ address: LoopbackAddress
    ) throws(LoopbackServerError) -> UInt16 {
        guard let storage = SocketAddress.bound(to: file) else { throw LoopbackServerError(errno, address) }
        return storage.port
    }

    private static func prepare(_ file: Int32) {
        _ = fcntl(file, F_SETFD, FD_CLOEXEC)
        _ = fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_NONBLOCK)
    }

    private static func setOption(_ file: Int32, _ level: Int32, _ name: Int32, _ value: Int32) {
        var value = value
        setsockopt(file, level, name, &value, socklen_t(MemoryLayout.size(ofValue: value)))
    }

    private static func acceptConnection(_ file: Int32) -> Int32 {
        #if !canImport(Darwin)
            if let acceptWithFlags {
                return acceptWithFlags(file, nil, nil, Int32(socket: SOCK_CLOEXEC) | Int32(socket: SOCK_NONBLOCK))
            }
        #endif
        let connection = Foundation.accept(file, nil, nil)
        if connection >= 0 { prepare(connection) }
        return connection
    }

    #if !canImport(Darwin)
        private typealias AcceptWithFlags =
            @convention(c) (
                Int32, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, Int32
            ) -> Int32

        /// `accept4`, which Swift's modules omit.
        private static let acceptWithFlags: AcceptWithFlags? = dlsym(nil, "accept4").map { symbol in
            unsafeBitCast(symbol, to: AcceptWithFlags.self)
        }
    #endif
}

extension LoopbackServerError {
    init(_ number: Int32, _ address: LoopbackAddress) {
        let code: Code =
            switch number {
            case EADDRINUSE: .addressInUse
            case EADDRNOTAVAIL, EAFNOSUPPORT: .addressNotAvailable
            case ENOENT, ENOTDIR, ENAMETOOLONG: .invalidPath
            case EMFILE, ENFILE: .tooManyOpenFiles
            case EACCES, EPERM: .permissionDenied
            default: .systemFailed
            }
        self.init(code: code, address: address, systemErrorNumber: number)
    }
}

/// An address in the form that the functions of the system take.
struct SocketAddress {
    private var storage = sockaddr_storage()
    private var length = socklen_t(MemoryLayout<sockaddr_storage>.size)

    /// Creates the address, or returns nil if a path is empty or too long.
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

    /// Returns the address of a socket.
    static func bound(to file: Int32) -> SocketAddress? {
        var address = SocketAddress()
        let result = withUnsafeMutablePointer(to: &address.storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(file, $0, &address.length) }
        }
        return result == 0 ? address : nil
    }

    /// The port, or 0 if the address has none.
    var port: UInt16 {
        withUnsafeBytes(of: storage) { bytes in
            // In the addresses of both IP versions, the port follows the family.
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

/// The sockets on which a server listens.
struct LoopbackListeners: Sendable {
    private(set) var files: [Int32] = []
    private(set) var addresses: [LoopbackAddress] = []

    init(_ options: LoopbackServer.Options) throws(LoopbackServerError) {
        do throws(LoopbackServerError) {
            for address in options.addresses { try add(address, options) }
        } catch {
            close()
            throw error
        }
    }

    func close() {
        for file in files { Sockets.close(file) }
        for case .unixSocket(let path) in addresses.map(\.kind) { unlink(path) }
    }

    private mutating func add(_ address: LoopbackAddress, _ options: LoopbackServer.Options) throws(LoopbackServerError)
    {
        // Addresses without a port get the same port for both IP versions, so that `localhost` works with either.
        let port = address.port == 0 ? addresses.first { $0.port != 0 }?.port ?? 0 : address.port
        let (file, bound) = try Sockets.listen(on: address.with(port: port), options: options)
        files.append(file)
        addresses.append(bound)
    }
}
