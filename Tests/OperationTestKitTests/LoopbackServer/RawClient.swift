// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit

/// A blocking client that sends and reads raw bytes, for threads of tests.
final class RawClient {
    enum Ending: Equatable {
        case end
        case reset
    }

    struct Failure: Error {
        let call: String
        let number: Int32
    }

    private let file: Int32
    private var isOpen = true

    /// Connects to a server on this machine.
    init(_ address: LoopbackAddress) throws {
        let text = "\(address)"
        if text.hasPrefix("[") {
            file = socket(AF_INET6, RawClient.stream, 0)
            var form = sockaddr_in6()
            form.sin6_family = sa_family_t(AF_INET6)
            form.sin6_port = RawClient.port(text).bigEndian
            withUnsafeMutableBytes(of: &form.sin6_addr) { $0[15] = 1 }
            try connect(form)
        } else if text.hasPrefix("/") {
            file = socket(AF_UNIX, RawClient.stream, 0)
            var form = sockaddr_un()
            form.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &form.sun_path) { $0.copyBytes(from: text.utf8) }
            try connect(form)
        } else {
            file = socket(AF_INET, RawClient.stream, 0)
            var form = sockaddr_in()
            form.sin_family = sa_family_t(AF_INET)
            form.sin_port = RawClient.port(text).bigEndian
            form.sin_addr = in_addr(s_addr: UInt32(0x7F00_0001).bigEndian)
            try connect(form)
        }
        // A test that waits in vain fails instead of hanging indefinitely.
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout.size(ofValue: limit)))
        setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout.size(ofValue: limit)))
    }

    deinit { close() }

    func close() {
        if isOpen { _ = Foundation.close(file) }
        isOpen = false
    }

    func send(_ text: String) throws { try send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.send(file, $0.baseAddress, $0.count, RawClient.noSignal) }
            guard count > 0 else { throw Failure(call: "send", number: errno) }
            rest = rest.dropFirst(count)
        }
    }

    /// Sends as many bytes as the connection accepts without waiting.
    ///
    /// Returns the number of bytes.
    func sendWithoutWaiting(_ bytes: [UInt8]) -> Int {
        var total = 0
        while total < bytes.count {
            let count = bytes.withUnsafeBytes { all in
                Foundation.send(
                    file, all.baseAddress.map { $0 + total }, all.count - total,
                    RawClient.noSignal | Int32(MSG_DONTWAIT))
            }
            guard count > 0 else { break }
            total += count
        }
        return total
    }

    /// Reads until this many bytes have arrived.
    func read(_ count: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            guard case (let more, nil) = try readSome(atMost: count - bytes.count) else { break }
            bytes += more
        }
        return bytes
    }

    func readText(_ count: Int) throws -> String { String(decoding: try read(count), as: UTF8.self) }

    /// Reads up to the end of the connection.
    func readToEnd() throws -> (text: String, ending: Ending) {
        var bytes: [UInt8] = []
        while true {
            let (more, ending) = try readSome(atMost: 1 << 16)
            bytes += more
            if let ending { return (String(decoding: bytes, as: UTF8.self), ending) }
        }
    }

    /// Reads a response whose headers contain the length of its body.
    func readAnswer() throws -> String {
        let text = try readHead()
        let lines = text.lowercased().components(separatedBy: "\r\n")
        let length = lines.first { $0.hasPrefix("content-length: ") }.flatMap { Int($0.dropFirst(16)) } ?? 0
        return text + (try readText(length))
    }

    /// Reads up to the first empty line.
    func readHead() throws -> String {
        var bytes: [UInt8] = []
        while !bytes.suffix(4).elementsEqual([13, 10, 13, 10]) {
            let byte = try read(1)
            if byte.isEmpty { break }
            bytes += byte
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private func readSome(atMost count: Int) throws -> (bytes: [UInt8], ending: Ending?) {
        var buffer = [UInt8](repeating: 0, count: count)
        let received = recv(file, &buffer, count, 0)
        if received > 0 { return (Array(buffer.prefix(received)), nil) }
        if received == 0 { return ([], .end) }
        if errno == ECONNRESET { return ([], .reset) }
        throw Failure(call: "recv", number: errno)
    }

    private func connect<Form>(_ form: Form) throws {
        var form = form
        let size = socklen_t(MemoryLayout<Form>.size)
        let result = withUnsafePointer(to: &form) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { Foundation.connect(file, $0, size) }
        }
        guard result == 0 else { throw Failure(call: "connect", number: errno) }
    }

    private static func port(_ text: String) -> UInt16 {
        text.split(separator: ":").last.flatMap { UInt16($0) } ?? 0
    }

    #if canImport(Darwin)
        private static let stream = SOCK_STREAM
        private static let noSignal: Int32 = 0
    #else
        private static let stream = Int32(SOCK_STREAM.rawValue)
        private static let noSignal = Int32(MSG_NOSIGNAL)
    #endif
}

/// Runs a test's body with a client on a thread that may block.
func withClient<Result: Sendable>(
    _ server: LoopbackServer, _ body: @escaping @Sendable (RawClient) throws -> Result
) async throws -> Result {
    let address = server.addresses[0]
    return try await TestThread.run {
        let client = try RawClient(address)
        defer { client.close() }
        return try body(client)
    }
}

/// A request without a body.
func get(_ target: String, _ fields: String = "") -> String {
    "GET \(target) HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n"
}

/// Yields to other threads until a condition is true.
///
/// Throws an error after 20 seconds.
func waitUntil(_ isSo: () -> Bool) throws {
    let start = ContinuousClock.now
    while !isSo() {
        guard start.duration(to: .now) < .seconds(20) else { throw RawClient.Failure(call: "waitUntil", number: 0) }
        sched_yield()
    }
}
