// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Dispatch
    import Foundation
    import OperationCore
    import OperationTestKit

    /// A small proxy that tunnels CONNECT requests, forwards http requests one by one, and can misbehave.
    ///
    /// Each connection has its own thread.
    final class ConnectProxy: Sendable {
        enum Behaviour: Sendable {
            case works
            case answers(String)
            case breaksOff
            case stalls
        }

        /// The request line and headers of a request, as they arrived.
        struct Seen: Sendable {
            let line: String
            let fields: [String]

            /// The value of a header.
            subscript(name: String) -> String? {
                fields.first { $0.lowercased().hasPrefix(name.lowercased() + ":") }
                    .map { $0.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces) }
            }
        }

        private struct State {
            var seen: [Seen] = []
            var open: Set<Int32> = []
            var isStopped = false
        }

        let port: UInt16
        private let listener: Int32
        private let destinations: [String: UInt16]
        private let credentials: String?
        private let behaviour: Behaviour
        private let state = Locked(State())
        private let threads = DispatchGroup()
        /// The number of requests seen.
        let arrivals = Tally()

        /// Starts the proxy.
        ///
        /// - Parameters:
        ///   - destinations: The local ports that represent hosts, such as `"good.test:443"`.
        ///   - credentials: The user and password that the proxy requires, separated by a colon.
        init(_ destinations: [String: UInt16], credentials: String? = nil, _ behaviour: Behaviour = .works) {
            self.destinations = destinations
            self.credentials = credentials
            self.behaviour = behaviour
            (listener, port) = LocalPort.listener()
            onThread { [self] in
                while case let socket = accept(listener, nil, nil), socket >= 0 {
                    onThread { [self] in serve(socket) }
                }
            }
        }

        var url: String { "http://127.0.0.1:\(port)" }

        /// The first request of each connection.
        var seen: [Seen] { state.withLock { $0.seen } }

        /// Ends all connections and waits for the threads.
        func stopped() async throws {
            try await TestThread.run { [self] in
                state.withLock { state in
                    state.isStopped = true
                    for socket in state.open { shutdown(socket, Int32(SHUT_RDWR)) }
                }
                shutdown(listener, Int32(SHUT_RDWR))
                threads.wait()
                close(listener)
            }
        }

        private func onThread(_ body: @escaping @Sendable () -> Void) {
            threads.enter()
            Thread { [threads] in
                body()
                threads.leave()
            }.start()
        }

        /// Registers an open socket.
        ///
        /// Returns false if the proxy was stopped.
        private func open(_ socket: Int32) -> Bool {
            state.withLock { state in
                if !state.isStopped { state.open.insert(socket) }
                return !state.isStopped
            }
        }

        private func end(_ socket: Int32) {
            state.withLock { _ = $0.open.remove(socket) }
            close(socket)
        }
    }

    // The handling of one connection.
    extension ConnectProxy {
        private func serve(_ client: Int32) {
            defer { end(client) }
            guard open(client), let (head, rest) = readHead(client), let line = head.first else { return }
            let seen = Seen(line: line, fields: Array(head.dropFirst()))
            state.withLock { $0.seen.append(seen) }
            arrivals.add()
            switch behaviour {
            case .breaksOff: return
            case .stalls: return drain(client)
            case .answers(let text):
                send(Array(text.utf8), to: client)
                return drain(client)
            case .works: break
            }
            guard isWelcome(seen) else {
                send(Array(Self.refusal.utf8), to: client)
                return drain(client)
            }
            let server = connection(for: line)
            guard server >= 0, open(server) else {
                send(Array("HTTP/1.1 502 No such host\r\nContent-Length: 0\r\n\r\n".utf8), to: client)
                return
            }
            defer { end(server) }
            if line.hasPrefix("CONNECT ") {
                send(Array("HTTP/1.1 200 Connected\r\nVia: test\r\n\r\n".utf8), to: client)
                send(rest, to: server)
            } else {
                send(Array(forwarded(seen).utf8) + rest, to: server)
            }
            pump(client, server)
        }

        private static let refusal =
            "HTTP/1.1 407 Who are you?\r\nProxy-Authenticate: Basic realm=\"proxy\"\r\nContent-Length: 0\r\n\r\n"

        private func isWelcome(_ seen: Seen) -> Bool {
            guard let credentials else { return true }
            return seen["Proxy-Authorization"] == "Basic \(Data(credentials.utf8).base64EncodedString())"
        }

        /// The request as the proxy forwards it.
        private func forwarded(_ seen: Seen) -> String {
            let parts = seen.line.split(separator: " ")
            let target = parts.count > 1 ? URL(string: String(parts[1])) : nil
            let fields = seen.fields.filter { !$0.lowercased().hasPrefix("proxy-") }
            let line = "\(parts.first ?? "GET") \(target?.path ?? "/") HTTP/1.1"
            return ([line] + fields + ["Connection: close", "", ""]).joined(separator: "\r\n")
        }

        private func connection(for line: String) -> Int32 {
            let parts = line.split(separator: " ")
            guard parts.count > 1 else { return -1 }
            var place = String(parts[1])
            if let url = URL(string: place), let host = url.host, place.hasPrefix("http://") {
                place = "\(host):\(url.port ?? 80)"
            }
            let number = place.split(separator: ":").last.flatMap { UInt16($0) }
            guard let port = destinations[place] ?? (place.hasPrefix("127.0.0.1:") ? number : nil) else { return -1 }
            return LocalPort.connection(to: port)
        }

        /// Reads the request line and headers, and the bytes after them.
        private func readHead(_ socket: Int32) -> ([String], [UInt8])? {
            var bytes: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 16 << 10)
            while true {
                let count = recv(socket, &buffer, buffer.count, 0)
                guard count > 0 else { return nil }
                bytes += buffer[..<count]
                let text = String(decoding: bytes, as: UTF8.self)
                if let end = text.range(of: "\r\n\r\n") {
                    let head = text[..<end.lowerBound]
                    return (head.components(separatedBy: "\r\n"), Array(bytes.dropFirst(head.utf8.count + 4)))
                }
            }
        }

        private func drain(_ socket: Int32) {
            var buffer = [UInt8](repeating: 0, count: 16 << 10)
            while recv(socket, &buffer, buffer.count, 0) > 0 {}
        }

        @discardableResult
        private func send(_ bytes: some Collection<UInt8>, to socket: Int32) -> Bool {
            let bytes = Array(bytes)
            var done = 0
            while done < bytes.count {
                let count = bytes.withUnsafeBytes { room in
                    Foundation.send(socket, room.baseAddress.map { $0 + done }, bytes.count - done, Int32(MSG_NOSIGNAL))
                }
                guard count > 0 else { return false }
                done += count
            }
            return true
        }

        private func pump(_ client: Int32, _ server: Int32) {
            var sides = [pollfd(fd: client, events: Int16(POLLIN), revents: 0)]
            sides.append(pollfd(fd: server, events: Int16(POLLIN), revents: 0))
            var buffer = [UInt8](repeating: 0, count: 64 << 10)
            while poll(&sides, 2, -1) > 0 {
                for index in 0..<2 where sides[index].revents != 0 {
                    let count = recv(sides[index].fd, &buffer, buffer.count, 0)
                    guard count > 0, send(buffer[..<count], to: sides[1 - index].fd) else { return }
                }
            }
        }
    }
#endif
