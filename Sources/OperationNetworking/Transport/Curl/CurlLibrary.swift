// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations
    import Foundation
    import OperationCore

    /// The libcurl of this process.
    package struct CurlLibrary: Sendable {
        /// Its version as 0xXXYYZZ.
        let number: UInt32
        /// Its version in words, and that of its TLS library.
        let version: String
        private let features: Int

        /// The library, or why it cannot be used.
        package static let shared = Result<CurlLibrary, NetworkError> { () throws(NetworkError) in try CurlLibrary() }

        /// It is the first that says when a request is about to be sent: without that nobody could know whether it was sent.
        private static let oldest: UInt32 = 0x07_50_00

        /// The library's file.
        private static let usualFile = "libcurl.so.4"
        private static let file = Locked(usualFile)

        /// Looks for another file, and for nothing else: for tests of what is done where there is none.
        ///
        /// To be called before anything is sent or asked.
        package static func seek(only name: String) { file.withLock { $0 = name } }

        private init() throws(NetworkError) {
            if let name = Self.load(Self.file.withLock { $0 }) {
                throw Self.refusal("\(name) was not found. Install libcurl 7.80 or newer (Debian: libcurl4).")
            }
            guard OKCurl.globalInit(Int(OKCurlGlobalAll)) == 0, let info = OKCurl.versionInfo(0)?.pointee,
                let text = info.version
            else { throw Self.refusal("libcurl could not be initialised.") }
            number = info.number
            features = Int(info.features)
            version = String(cString: text) + (info.tlsVersion.map { " " + String(cString: $0) } ?? "")
            if let refusal = Self.refusal(ofVersion: number, version) { throw refusal }
            guard has(OKCurlFeatureTLS), has(OKCurlFeatureAsynchronousNames) else {
                throw Self.refusal("libcurl \(version) was built without TLS or without asynchronous name look-up.")
            }
        }

        /// Finds the functions; what was not found, if anything.
        private static func load(_ file: String) -> String? {
            file.withCString { name in
                var problem: UnsafePointer<CChar>?
                guard !OKCurlLoad(name, file == usualFile, &problem) else { return nil }
                return problem.map { String(cString: $0) } ?? file
            }
        }

        /// Why a version cannot be used.
        package static func refusal(ofVersion number: UInt32, _ version: String) -> NetworkError? {
            number >= oldest ? nil : refusal("libcurl \(version) is too old. Install 7.80 or newer.")
        }

        private static func refusal(_ message: String) -> NetworkError {
            NetworkError(
                code: .sessionUnavailable, phase: .waiting, message: "CurlSession cannot work here: \(message)")
        }

        func has(_ feature: Int) -> Bool { features & feature != 0 }

        /// Whether it can let go of a transfer without waiting for the thread that looks a name up (7.87).
        package var leavesLookupsBehind: Bool { number >= 0x07_57_00 }

        /// Whether its messages tell which streams an HTTP/2 server did not process.
        ///
        /// From 7.88 on libcurl reports a GOAWAY with its last stream. The upper limit is the newest version whose
        /// source was read. The source shows that a transfer cannot change its connection without a new redirect time.
        var tellsRefusals: Bool { (0x07_58_00..<0x08_13_00).contains(number) }

        /// Whether a handle may serve a second transfer.
        ///
        /// From 7.83 on libcurl remembers the last header field of a transfer, and up to 8.1.0 it goes on doing so in the
        /// next one: a server whose first field begins with a blank makes it use freed memory.
        var forgetsHeaders: Bool { number < 0x07_53_00 || number > 0x08_01_00 }
    }

    /// A message of libcurl that tells something about HTTP/2.
    package enum CurlNotice: Equatable, Sendable {
        /// The transfer's request was submitted as a stream of its connection.
        case stream(UInt32)
        /// The server of the transfer's connection sent a GOAWAY: it processes no stream above the last one.
        case goAway(lastStream: UInt32)

        /// Reads a line; `nil` if it is any other message.
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
                // The misspelling is that of 7.88 and 8.0. These print large error codes as negative numbers.
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

            /// Whether nothing is left but the end of the line.
            var isAtEnd: Bool { rest.isEmpty || rest.count == 1 && rest.first == 0x0A }

            /// Skips a text; false, without skipping anything, if the rest does not begin with it.
            mutating func skips(_ text: StaticString) -> Bool {
                let wanted = UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
                guard rest.starts(with: wanted) else { return false }
                rest = rest.dropFirst(wanted.count)
                return true
            }

            /// Reads a decimal number; `nil` if there is none, or it does not fit.
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

    /// Header fields, or other lines, in the form in which libcurl reads them, in one piece of memory.
    struct CurlList: ~Copyable {
        enum Line {
            case field(String, String)
            /// A field that libcurl is to leave out.
            case without(String)
            case text(String)

            fileprivate var size: Int {
                switch self {
                // Colon, blank, zero.
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
