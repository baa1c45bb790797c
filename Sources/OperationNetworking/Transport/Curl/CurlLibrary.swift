// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations
    import Foundation
    import OperationCore

    /// The libcurl library of this process.
    package struct CurlLibrary: Sendable {
        /// The version as 0xXXYYZZ.
        let number: UInt32
        /// The versions of libcurl and of its TLS library as text.
        let version: String
        private let features: Int

        /// The library, or the reason why it cannot be used.
        package static let shared = Result<CurlLibrary, NetworkError> { () throws(NetworkError) in try CurlLibrary() }

        /// The oldest version that reports when a request is about to be sent, so that it is known whether a request
        /// was sent.
        private static let oldest: UInt32 = 0x07_50_00

        /// The usual file of the library.
        private static let usualFile = "libcurl.so.4"
        private static let file = Locked(usualFile)

        /// Searches for another file only, for tests of what happens without the library.
        ///
        /// Call this function before anything is sent.
        package static func seek(only name: String) { file.withLock { $0 = name } }

        private init() throws(NetworkError) {
            if let name = Self.load(Self.file.withLock { $0 }) {
                throw Self.refusal("\(name) was not found. Install libcurl 7.80 or newer (Debian: libcurl4).")
            }
            guard OKCurl.globalInit(Int(OKCurlGlobalAll)) == 0, let info = OKCurl.versionInfo(0)?.pointee,
                let text = info.version
            else { throw Self.refusal("libcurl could not be initialized.") }
            number = info.number
            features = Int(info.features)
            version = String(cString: text) + (info.tlsVersion.map { " " + String(cString: $0) } ?? "")
            if let refusal = Self.refusal(ofVersion: number, version) { throw refusal }
            guard has(OKCurlFeatureTLS), has(OKCurlFeatureAsynchronousNames) else {
                throw Self.refusal("libcurl \(version) was built without TLS or without asynchronous name resolution.")
            }
        }

        /// Finds the functions, and returns the name of the missing file or function, or `nil` if all were found.
        private static func load(_ file: String) -> String? {
            file.withCString { name in
                var problem: UnsafePointer<CChar>?
                guard !OKCurlLoad(name, file == usualFile, &problem) else { return nil }
                return problem.map { String(cString: $0) } ?? file
            }
        }

        /// Returns an error if a version is too old.
        package static func refusal(ofVersion number: UInt32, _ version: String) -> NetworkError? {
            number >= oldest ? nil : refusal("libcurl \(version) is too old. Install 7.80 or newer.")
        }

        private static func refusal(_ message: String) -> NetworkError {
            NetworkError(
                code: .sessionUnavailable, phase: .waiting, message: "CurlSession cannot work here: \(message)")
        }

        func has(_ feature: Int) -> Bool { features & feature != 0 }

        /// Whether libcurl can release a transfer without waiting for the thread that looks up a name (7.87).
        package var leavesLookupsBehind: Bool { number >= 0x07_57_00 }

        /// Whether its messages tell which streams an HTTP/2 server did not process.
        ///
        /// From 7.88 on libcurl reports a GOAWAY with its last stream. The upper limit is the newest version whose
        /// source was read. The source shows that a transfer cannot change its connection without a new redirect time.
        var reportsRefusals: Bool { (0x07_58_00..<0x08_13_00).contains(number) }

        /// Whether a handle can be used for a second transfer.
        ///
        /// Since 7.83, libcurl remembers the last header of a transfer. Up to 8.1.0, it still does so in the next
        /// transfer. If the first header of a server begins with a blank, libcurl then uses freed memory.
        var forgetsHeaders: Bool { number < 0x07_53_00 || number > 0x08_01_00 }
    }

    /// A libcurl log message about HTTP/2.
    package enum CurlNotice: Equatable, Sendable {
        /// The transfer's request was submitted as a stream of its connection.
        case stream(UInt32)
        /// The server of the transfer's connection sent a GOAWAY, and processes no stream above the last one.
        case goAway(lastStream: UInt32)

        /// Parses a line, or returns `nil` if it is any other message.
        package init?(_ text: UnsafeRawBufferPointer) {
            // Most other lines begin with another letter.
            guard let first = text.first, first == 0x55 || first == 0x5B || first == 0x72 else { return nil }
            var line = Line(text)
            if line.skips("Using Stream ID: ") {
                // Versions up to 8.1 write this.
                guard let number = line.number(), line.skips(" (easy handle ") else { return nil }
                self = .stream(number)
            } else if line.skips("[HTTP/2] [") {
                guard let number = line.number(), line.skips("] OPENED stream for ") else { return nil }
                self = .stream(number)
            } else if line.skips("recveived GOAWAY, error=") || line.skips("received GOAWAY, error=") {
                // The misspelling is in 7.88 and 8.0. These versions print large error codes as negative numbers.
                _ = line.skips("-")
                guard line.number() != nil, line.skips(", last_stream="), let last = line.number(), line.isAtEnd else {
                    return nil
                }
                self = .goAway(lastStream: last)
            } else {
                return nil
            }
        }

        private struct Line {
            private var rest: Slice<UnsafeRawBufferPointer>

            init(_ text: UnsafeRawBufferPointer) { rest = text[...] }

            /// Whether nothing is left except the end of the line.
            var isAtEnd: Bool { rest.isEmpty || rest.count == 1 && rest.first == 0x0A }

            /// Skips a string, or returns `false` and skips nothing if the rest does not begin with it.
            mutating func skips(_ text: StaticString) -> Bool {
                let wanted = UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
                guard rest.starts(with: wanted) else { return false }
                rest = rest.dropFirst(wanted.count)
                return true
            }

            /// Reads a decimal number, or returns `nil` if there is none or it is too large.
            mutating func number() -> UInt32? {
                var value: UInt64 = 0
                var digits = 0
                while let byte = rest.first, (0x30...0x39).contains(byte), digits < 11 {
                    value = value * 10 + UInt64(byte - 0x30)
                    digits += 1
                    rest = rest.dropFirst()
                }
                return digits == 0 ? nil : UInt32(exactly: value)
            }
        }
    }

    /// Headers, or other lines, in the form in which libcurl reads them, in one block of memory.
    struct CurlList: ~Copyable {
        enum Line {
            case field(String, String)
            /// A header that libcurl must leave out.
            case without(String)
            case text(String)

            fileprivate var size: Int {
                switch self {
                // A colon, a blank and a zero follow the texts.
                case .field(let name, let value): name.utf8.count + value.utf8.count + 3
                case .without(let text), .text(let text): text.utf8.count + 2
                }
            }
        }

        let head: UnsafeMutablePointer<OKCurlList>?
        private let block: UnsafeMutableRawPointer?

        init(_ lines: [Line]) {
            guard !lines.isEmpty else {
                head = nil
                block = nil
                return
            }
            let stride = MemoryLayout<OKCurlList>.stride
            let memory = UnsafeMutableRawPointer.allocate(
                byteCount: lines.reduce(stride * lines.count) { $0 + $1.size },
                alignment: MemoryLayout<OKCurlList>.alignment)
            let nodes = memory.bindMemory(to: OKCurlList.self, capacity: lines.count)
            var next = (memory + stride * lines.count).bindMemory(to: CChar.self, capacity: 1)
            for (index, line) in lines.enumerated() {
                let isLast = index + 1 == lines.count
                nodes[index] = OKCurlList(text: next, next: isLast ? nil : nodes + index + 1)
                Self.write(line, at: &next)
            }
            head = nodes
            block = memory
        }

        private static func write(_ line: Line, at next: inout UnsafeMutablePointer<CChar>) {
            switch line {
            case .field(let name, ""):
                write(name, at: &next)
                write(";", at: &next)
            case .field(let name, let value):
                write(name, at: &next)
                write(": ", at: &next)
                write(value, at: &next)
            case .without(let name):
                write(name, at: &next)
                write(":", at: &next)
            case .text(let text): write(text, at: &next)
            }
            next.pointee = 0
            next += 1
        }

        private static func write(_ text: String, at next: inout UnsafeMutablePointer<CChar>) {
            var text = text
            text.withUTF8 { bytes in
                guard let base = bytes.baseAddress else { return }
                memcpy(next, base, bytes.count)
                next += bytes.count
            }
        }

        deinit {
            block?.deallocate()
        }
    }
#endif
