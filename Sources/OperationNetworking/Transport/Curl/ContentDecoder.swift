// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations

    /// Decompresses the body of a response, portion by portion, and knows whether it came to its end.
    ///
    /// libcurl could do it, too, but takes a body that is cut short for a whole one. Beneath it is the zlib that libcurl
    /// itself has loaded.
    package final class ContentDecoder {
        package enum Outcome: Equatable {
            /// So many bytes were used up, and so many made.
            case portion(used: Int, made: Int)
            case refused(String)
        }

        private enum State {
            case fresh
            case running(OpaquePointer)
            /// A stream came to its end; another may follow.
            case between(OpaquePointer)
        }

        /// Whether bodies can be decompressed on this system.
        static let isAvailable = OKInflateLoad()

        /// What is asked for.
        static let codings = "gzip, deflate"

        /// The greatest number of zeros that may follow the end.
        ///
        /// No block of a disk or a tape is larger.
        package static let mostPadding = 1 << 20

        private let isGzip: Bool
        private var padding = 0
        private var state = State.fresh

        /// Nil if the coding is not known, or nothing can be decompressed here.
        package init?(coding: String) {
            guard Self.isAvailable else { return nil }
            switch coding {
            case "gzip", "x-gzip": isGzip = true
            case "deflate": isGzip = false
            default: return nil
            }
        }

        deinit {
            switch state {
            case .fresh: break
            case .running(let stream), .between(let stream): OKInflateFree(stream)
            }
        }

        /// Whether the body may end here.
        package var isComplete: Bool {
            if case .running = state { false } else { true }
        }

        package func decode(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) -> Outcome {
            let stream: OpaquePointer
            switch (state, input.first) {
            case (.running(let running), _): stream = running
            case (_, nil): return .portion(used: 0, made: 0)
            case (.fresh, let first?):
                guard let made = OKInflateMake(isGzip ? 31 : Self.hasHeader(first) ? 15 : -15) else {
                    return .refused("there was no memory left")
                }
                stream = made
            case (.between, 0?) where isGzip:
                // Some servers fill up their last block with zeros. RFC 1952 is silent about it, and browsers ignore them.
                let count = input.prefix { $0 == 0 }.count
                padding += count
                return padding > Self.mostPadding
                    ? .refused("too many zeros follow its end") : .portion(used: count, made: 0)
            case (.between(let ended), let first?):
                guard isGzip, first == 0x1F, OKInflateReset(ended) else {
                    return .refused("something follows its end")
                }
                stream = ended
            }
            state = .running(stream)
            var (used, made) = (0, 0)
            let status = OKInflate(
                stream, input.baseAddress, input.count, &used, output.baseAddress, output.count, &made)
            if status < 0 { return .refused("its bytes are damaged") }
            if status == 1 { state = .between(stream) }
            return .portion(used: used, made: made)
        }

        /// Whether "deflate" is what it should be, and not the bare form that some servers send.
        private static func hasHeader(_ byte: UInt8) -> Bool { byte & 0x0F == 8 && byte >> 4 <= 7 }
    }
#endif
