// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    /// A message of libcurl that tells something about HTTP/2.
    package enum CurlRemark: Equatable, Sendable {
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
#endif
