// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    /// The body of a response on its way in: decompressed where it is to be, and kept while there is a brake.
    package struct BodyIntake {
        /// Why it does not go on.
        package enum Refusal: Error, Equatable {
            case undecodable(String)
            /// It grew too much by being decompressed.
            case expanded
        }

        /// Whom the bytes are told, and whether they may be told now.
        package struct Listener {
            let mayTell: () -> Bool
            let tell: (UnsafeRawBufferPointer) -> Void

            package init(mayTell: @escaping () -> Bool, tell: @escaping (UnsafeRawBufferPointer) -> Void) {
                self.mayTell = mayTell
                self.tell = tell
            }
        }

        private let decoder: ContentDecoder?
        private let maximumExpansion: Int
        /// What came in, and was not decompressed because of a brake.
        private var rest: [UInt8] = []
        /// The decoder has more than there was room for.
        private var isDecoderFull = false
        private var receivedCount: Int64 = 0
        private var decodedCount: Int64 = 0
        /// All came in, and something is still to be decompressed.
        package private(set) var isEndAwaited = false

        package init(_ decoder: ContentDecoder? = nil, maximumExpansion: Int = .max) {
            self.decoder = decoder
            self.maximumExpansion = maximumExpansion
        }

        /// Whether the bytes are decompressed.
        package var decodes: Bool { decoder != nil }

        /// Whether a brake has left something behind, before which nothing else may be told.
        package var hasRest: Bool { !rest.isEmpty || isDecoderFull }

        /// Takes bytes in, tells what may be told of them and keeps the rest; not while there is a rest.
        package mutating func take(_ bytes: UnsafeRawBufferPointer, _ listener: Listener) throws(Refusal) {
            receivedCount += Int64(bytes.count)
            guard decoder != nil else { return listener.tell(bytes) }
            let used = try decode(bytes, listener)
            if used < bytes.count { rest = Array(bytes[used...]) }
        }

        /// Goes on with what a brake had stopped.
        package mutating func goOn(_ listener: Listener) throws(Refusal) {
            guard hasRest else { return }
            let bytes = exchange(&rest, with: [])
            var outcome = Result<Int, Refusal>.success(0)
            bytes.withUnsafeBytes { bytes in
                outcome = Result { () throws(Refusal) in try decode(bytes, listener) }
            }
            rest = Array(bytes[try outcome.get()...])
        }

        /// All came in; false if it must wait until the rest was told.
        package mutating func mayEnd() throws(Refusal) -> Bool {
            isEndAwaited = hasRest
            if isEndAwaited { return false }
            if decoder?.isComplete == false { throw .undecodable("it ends too early. Try again") }
            return true
        }

        /// Decompresses and tells until a brake is set; gives how much was used up.
        private mutating func decode(_ bytes: UnsafeRawBufferPointer, _ listener: Listener) throws(Refusal) -> Int {
            guard let decoder else { return bytes.count }
            var used = 0
            var refusal: Refusal?
            withUnsafeTemporaryAllocation(byteCount: 32 << 10, alignment: 1) { room in
                while refusal == nil, used < bytes.count || isDecoderFull, listener.mayTell() {
                    switch decoder.decode(UnsafeRawBufferPointer(rebasing: bytes[used...]), into: room) {
                    case .refused(let reason): refusal = .undecodable(reason)
                    case .portion(let count, let made):
                        used += count
                        isDecoderFull = made == room.count
                        decodedCount += Int64(made)
                        if made == 0 { continue }
                        if isExpanded { refusal = .expanded } else { listener.tell(.init(rebasing: room[..<made])) }
                    }
                }
            }
            if let refusal { throw refusal }
            return used
        }

        private var isExpanded: Bool {
            decodedCount > 1 << 20 && decodedCount / max(receivedCount, 1) >= Int64(maximumExpansion)
        }
    }
#endif
