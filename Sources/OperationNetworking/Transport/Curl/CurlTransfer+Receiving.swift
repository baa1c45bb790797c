// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations

    // What libcurl tells of the response. Each answer is what its callback is to return.
    extension CurlTransfer {
        /// Lines of a head or of trailers: one, or several that libcurl had kept during a pause.
        func receiveHeader(_ lines: UnsafeRawBufferPointer) -> Int {
            guard let task, problem == nil else { return 0 }
            if deadlines.received(at: loop.now) { loop.rearm(self) }
            headerCount += lines.count
            guard headerCount <= task.request.options.maximumHeaderSize else {
                fail(
                    .headerTooLarge,
                    "The head of the response is larger than \(task.request.options.maximumHeaderSize) bytes. "
                        + "Raise maximumHeaderSize in the request's options if that is right.")
                return 0
            }
            task.confined.machine.responded()
            var rest = lines[...]
            while problem == nil, !rest.isEmpty {
                let end = rest.firstIndex(of: 0x0A).map { $0 + 1 } ?? rest.endIndex
                receive(line: UnsafeRawBufferPointer(rebasing: rest[..<end]), task)
                rest = rest[end...]
            }
            return problem == nil ? lines.count : 0
        }

        private func receive(line: UnsafeRawBufferPointer, _ task: CurlTask) {
            switch parser.receive(line) {
            case .none: break
            case .refused(let reason): fail(.invalidResponse, "The response is no valid HTTP: \(reason).")
            case .head(let parts): receive(parts, task)
            }
        }

        private func receive(_ parts: ResponseHeadParser.Head, _ task: CurlTask) {
            let isFinal = parts.status >= 200
            if isFinal {
                guard status == nil else {
                    return fail(.invalidResponse, "The server sent a second head to one request.")
                }
                status = parts.status
                task.tellSent(handle.wholeCount)
                chooseIntake(parts, task)
                if problem != nil { return }
            }
            let head = ResponseHead(
                url: task.request.url, status: parts.status, headers: parts.fields, version: parts.version,
                reason: parts.reason, isDecoded: isFinal && intake.decodes)
            if isFinal { bodyCount = BodyCount(parts, method: task.request.method) }
            task.tell(isFinal ? .head(head) : .informational(head))
        }

        private func chooseIntake(_ head: ResponseHeadParser.Head, _ task: CurlTask) {
            guard task.request.isDecoded else { return }
            let codings = head.fields.values("Content-Encoding").flatMap { $0.split(separator: ",") }
                .map { String($0).trimmedBlanks.lowercased() }.filter { $0 != "identity" && !$0.isEmpty }
            guard let coding = codings.first else { return }
            guard codings.count == 1, let decoder = ContentDecoder(coding: coding) else {
                return fail(
                    .undecodableBody,
                    "The body is compressed in a way that nobody asked for: Content-Encoding is none of "
                        + "\(ContentDecoder.codings).")
            }
            intake = BodyIntake(decoder, maximumExpansion: task.request.options.maximumExpansion)
        }

        /// Bytes of the body.
        func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
            guard let task, problem == nil else { return 0 }
            if deadlines.received(at: loop.now) { loop.rearm(self) }
            switch task.permission {
            case .drop:
                handle.forbidsReuse = true
                return 0
            case .keep,
                .go where intake.hasRest:
                isReceivingStalled = true
                return OKCurlWritePause
            case .go where !intake.decodes:
                bodyCount.add(bytes.count)
                task.confined.receiver?.task(task, didReceive: bytes)
                return bytes.count
            case .go:
                bodyCount.add(bytes.count)
                return decode(bytes, task)
            }
        }

        private func decode(_ bytes: UnsafeRawBufferPointer, _ task: CurlTask) -> Int {
            do throws(BodyIntake.Refusal) {
                try intake.take(bytes, listener(task))
                return bytes.count
            } catch {
                fail(error, task)
                return 0
            }
        }

        /// Goes on with what a brake had stopped.
        func decodeRest() {
            guard intake.hasRest, let task, problem == nil else { return }
            do throws(BodyIntake.Refusal) { try intake.goOn(listener(task)) } catch { fail(error, task) }
        }

        private func listener(_ task: CurlTask) -> BodyIntake.Listener {
            BodyIntake.Listener(
                mayTell: { task.permission == .go },
                tell: { task.confined.receiver?.task(task, didReceive: $0) })
        }

        /// libcurl has told its end; false if that must wait until the rest was decompressed.
        func mayEnd(code: Int32) -> Bool {
            guard let task, code == 0, problem == nil else { return true }
            do throws(BodyIntake.Refusal) {
                return try intake.mayEnd()
            } catch {
                fail(error, task)
                return true
            }
        }

        /// Whether the end that libcurl told of may be told now.
        var hasWaitedForDecoder: Bool { intake.isEndAwaited && !intake.hasRest }

        private func fail(_ refusal: BodyIntake.Refusal, _ task: CurlTask) {
            switch refusal {
            case .undecodable(let reason): fail(.undecodableBody, "The body cannot be decompressed: \(reason).")
            case .expanded:
                let limit = task.request.options.maximumExpansion
                fail(
                    .expansionTooLarge,
                    "The decompressed body is more than \(limit) times as large as what was received. "
                        + "Raise maximumExpansion in the request's options if that is right.")
            }
        }
    }

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
