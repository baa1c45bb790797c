// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationCore

    /// A name server on the loopback interface that does not reply for `silent.test` until `speak` is called.
    ///
    /// Names that end in `none.test` do not exist. All other names have the address 127.0.0.1.
    final class NameServer: Sendable {
        private struct Question {
            let bytes: [UInt8]
            let asker: sockaddr_in
        }

        private struct State {
            var isSpeaking = false
            var names: [String] = []
            var unanswered: [Question] = []
        }

        private let descriptor: Int32
        private let state = Locked(State())
        private let news = DispatchSemaphore(value: 0)

        /// Opens the port that the system's resolver queries.
        ///
        /// Returns `nil` if the port is not available.
        init?() {
            descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = in_port_t(53).bigEndian
            address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
            let size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let code = withUnsafeBytes(of: &address) { bytes in
                bind(descriptor, bytes.bindMemory(to: sockaddr.self).baseAddress, size)
            }
            guard descriptor >= 0, code == 0 else { return nil }
            Thread { while let question = self.receive() { self.take(question) } }.start()
        }

        /// The queried names, each once, in order.
        var names: [String] { state.withLock { $0.names } }

        /// Waits until another name is queried.
        ///
        /// Returns false after a timeout.
        func isAskedForAnother() -> Bool { news.wait(timeout: .now() + 20) == .success }

        /// Replies to all pending queries and to all later ones.
        func speak() {
            let questions = state.withLock { state in
                state.isSpeaking = true
                return exchange(&state.unanswered, with: [])
            }
            for question in questions { answer(question) }
        }

        private func receive() -> Question? {
            var bytes = [UInt8](repeating: 0, count: 512)
            var asker = sockaddr_in()
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let count = withUnsafeMutableBytes(of: &asker) { place in
                recvfrom(descriptor, &bytes, bytes.count, 0, place.bindMemory(to: sockaddr.self).baseAddress, &size)
            }
            return count < 0 ? nil : Question(bytes: Array(bytes[..<count]), asker: asker)
        }

        private func take(_ question: Question) {
            let name = Self.name(in: question.bytes)
            let (isNew, isAnswered) = state.withLock { state in
                let isNew = !state.names.contains(name)
                if isNew { state.names.append(name) }
                let isAnswered = state.isSpeaking || !name.hasSuffix("silent.test")
                if !isAnswered { state.unanswered.append(question) }
                return (isNew, isAnswered)
            }
            if isAnswered { answer(question) }
            if isNew { news.signal() }
        }

        private static func name(in question: [UInt8]) -> String {
            var labels: [String] = [], rest = question.dropFirst(12)
            while let count = rest.popFirst(), count > 0 {
                labels.append(String(decoding: rest.prefix(Int(count)), as: UTF8.self))
                rest = rest.dropFirst(Int(count))
            }
            return labels.joined(separator: ".")
        }

        /// Sends the question and, for IPv4, one record with the same name, no lifetime and the address 127.0.0.1.
        private func answer(_ question: Question) {
            let name = Self.name(in: question.bytes)
            let end = 12 + name.utf8.count + 2 + 4
            guard question.bytes.count >= end else { return }
            let isNowhere = name.contains("none.test")
            let hasRecord = !isNowhere && question.bytes[end - 3] == 1
            let counts: [UInt8] = [0, 1, 0, hasRecord ? 1 : 0, 0, 0, 0, 0]
            var bytes = question.bytes[..<2] + [0x81, isNowhere ? 0x83 : 0x80] + counts + question.bytes[12..<end]
            if hasRecord { bytes += [0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1] }
            var asker = question.asker
            let size = socklen_t(MemoryLayout<sockaddr_in>.size)
            withUnsafeBytes(of: &asker) { place in
                _ = sendto(
                    descriptor, Array(bytes), bytes.count, 0, place.bindMemory(to: sockaddr.self).baseAddress, size)
            }
        }
    }
#endif
