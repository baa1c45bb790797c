// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import CurlDeclarations

    // The callbacks of libcurl for receiving. Each function returns the result of its callback.
    extension CurlTransfer {
        /// Handles lines of headers or trailers, of which libcurl passes several if it kept them during a pause.
        func receiveHeader(_ lines: UnsafeRawBufferPointer) -> Int {
            guard let task, attempt.problem == nil else { return 0 }
            if deadlines.received(at: loop.now) {
                task.confined.machine.responded()
                loop.rearm(self)
            }
            attempt.headerCount += lines.count
            guard attempt.headerCount <= task.request.options.maximumHeaderSize else {
                fail(
                    .headerTooLarge,
                    "The headers of the response are larger than \(task.request.options.maximumHeaderSize) bytes. "
                        + "If the server needs such headers, raise maximumHeaderSize in the request's options.")
                return 0
            }
            var rest = lines[...]
            while attempt.problem == nil, !rest.isEmpty {
                let end = rest.firstIndex(of: 0x0A).map { $0 + 1 } ?? rest.endIndex
                receive(line: UnsafeRawBufferPointer(rebasing: rest[..<end]), task)
                rest = rest[end...]
            }
            return attempt.problem == nil ? lines.count : 0
        }

        private func receive(line: UnsafeRawBufferPointer, _ task: CurlTask) {
            switch attempt.parser.receive(line) {
            case .none: break
            case .refused(let reason): fail(.invalidResponse, "The response is not valid HTTP: \(reason).")
            case .head(let parts): receive(parts, task)
            }
        }

        private func receive(_ parts: ResponseHeadParser.Head, _ task: CurlTask) {
            let isFinal = parts.status >= 200
            if isFinal {
                guard attempt.status == nil else {
                    return fail(.invalidResponse, "The server sent two responses to one request.")
                }
                attempt.status = parts.status
                // An informational response may have come in the same call.
                if deadlines.received(at: loop.now) { loop.rearm(self) }
                if attempt.outlet != nil { task.reportSent(handle.wholeCount) }
                chooseIntake(parts, task)
                if attempt.problem != nil { return }
            } else {
                deadlines.receivedInformational(isSending: attempt.outlet?.isComplete == false)
                loop.rearm(self)
            }
            let head = ResponseHead(
                url: task.request.url, status: parts.status, headers: parts.fields, version: parts.version,
                reason: parts.reason, isDecoded: isFinal && attempt.intake != nil)
            if isFinal { attempt.head = parts }
            task.report(isFinal ? .head(head) : .informational(head))
        }

        private func chooseIntake(_ head: ResponseHeadParser.Head, _ task: CurlTask) {
            guard head.fields.contains("Content-Encoding"), task.request.isDecoded else { return }
            let codings = head.fields.values("Content-Encoding").flatMap { $0.split(separator: ",") }
                .map { String($0).trimmedBlanks.lowercased() }.filter { $0 != "identity" && !$0.isEmpty }
            guard let coding = codings.first else { return }
            guard codings.count == 1, let decoder = ContentDecoder(coding: coding) else {
                // Without a body, there is nothing to decompress.
                guard ResponseHead.mayHaveBody(status: head.status, method: task.request.method) else { return }
                return fail(
                    .undecodableBody,
                    "The body is compressed in an unsupported way: Content-Encoding is not one of "
                        + "\(ContentDecoder.codings).")
            }
            attempt.intake = BodyIntake(decoder, maximumExpansion: task.request.options.maximumExpansion)
        }

        /// Handles bytes of the body.
        func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
            guard let task, attempt.problem == nil else { return 0 }
            if deadlines.received(at: loop.now) { loop.rearm(self) }
            switch task.permission {
            case .drop:
                handle.forbidsReuse = true
                return 0
            case .keep,
                .go where attempt.intake?.hasRest == true:
                attempt.isReceivingStalled = true
                return OKCurlWritePause
            case .go where attempt.intake == nil:
                attempt.bodyLength += Int64(bytes.count)
                task.confined.receiver?.task(task, didReceive: bytes)
                return bytes.count
            case .go:
                attempt.bodyLength += Int64(bytes.count)
                return decode(bytes, task)
            }
        }

        private func decode(_ bytes: UnsafeRawBufferPointer, _ task: CurlTask) -> Int {
            do throws(BodyIntake.Refusal) {
                try attempt.intake?.take(bytes, listener(task))
                return bytes.count
            } catch {
                fail(error, task)
                return 0
            }
        }

        /// Continues the decompression that a pause interrupted.
        func decodeRest() {
            guard attempt.intake?.hasRest == true, let task, attempt.problem == nil else { return }
            do throws(BodyIntake.Refusal) { try attempt.intake?.resume(listener(task)) } catch { fail(error, task) }
        }

        private func listener(_ task: CurlTask) -> BodyIntake.Listener {
            BodyIntake.Listener(
                mayReport: { task.permission == .go },
                report: { task.confined.receiver?.task(task, didReceive: $0) })
        }

        /// Returns whether a transfer that libcurl ended can end now, and does not have to wait for its decompression.
        func mayEnd(code: Int32) -> Bool {
            guard let task, code == 0, attempt.problem == nil else { return true }
            do throws(BodyIntake.Refusal) {
                return try attempt.intake?.mayEnd() != false
            } catch {
                fail(error, task)
                return true
            }
        }

        /// Whether a transfer that libcurl ended, and that waited for its decompression, can end now.
        var hasWaitedForDecoder: Bool { attempt.intake?.isEndAwaited == true && attempt.intake?.hasRest == false }

        private func fail(_ refusal: BodyIntake.Refusal, _ task: CurlTask) {
            switch refusal {
            case .undecodable(let reason): fail(.undecodableBody, "The body cannot be decompressed: \(reason).")
            case .expanded:
                let limit = task.request.options.maximumExpansion
                fail(
                    .expansionTooLarge,
                    "The decompressed body is more than \(limit) times as large as the received data. "
                        + "If you expect this ratio, raise maximumExpansion in the request's options.")
            }
        }
    }

    /// The incoming body of a response, which is decompressed, and kept while delivery is paused.
    package struct BodyIntake {
        /// The reason to reject a body.
        package enum Refusal: Error, Equatable {
            case undecodable(String)
            /// The body became too large by decompression.
            case expanded
        }

        /// The receiver of the bytes, with a closure that returns whether bytes may be delivered now.
        package struct Listener {
            let mayReport: () -> Bool
            let report: (UnsafeRawBufferPointer) -> Void

            package init(mayReport: @escaping () -> Bool, report: @escaping (UnsafeRawBufferPointer) -> Void) {
                self.mayReport = mayReport
                self.report = report
            }
        }

        private let decoder: ContentDecoder
        private let maximumExpansion: Int
        /// The bytes that arrived and were not decompressed because of a pause.
        private var rest: [UInt8] = []
        /// Whether the decoder has more output than there was room for.
        private var isDecoderFull = false
        private var receivedCount: Int64 = 0
        private var decodedCount: Int64 = 0
        /// Whether all bytes arrived and some are still to be decompressed.
        package private(set) var isEndAwaited = false

        package init(_ decoder: ContentDecoder, maximumExpansion: Int) {
            self.decoder = decoder
            self.maximumExpansion = maximumExpansion
        }

        /// Whether a pause left bytes behind, which must be delivered before any others.
        package var hasRest: Bool { !rest.isEmpty || isDecoderFull }

        /// Decompresses bytes, delivers as many as the pauses allow, and keeps the rest.
        ///
        /// Do not call this method if `hasRest` is `true`.
        package mutating func take(_ bytes: UnsafeRawBufferPointer, _ listener: Listener) throws(Refusal) {
            receivedCount += Int64(bytes.count)
            let used = try decode(bytes, listener)
            if used < bytes.count { rest = Array(bytes[used...]) }
        }

        /// Continues what a pause interrupted.
        package mutating func resume(_ listener: Listener) throws(Refusal) {
            guard hasRest else { return }
            let bytes = exchange(&rest, with: [])
            var outcome = Result<Int, Refusal>.success(0)
            bytes.withUnsafeBytes { bytes in
                outcome = Result { () throws(Refusal) in try decode(bytes, listener) }
            }
            rest = Array(bytes[try outcome.get()...])
        }

        /// Records that all bytes arrived, and returns `false` if the end must wait until the rest was delivered.
        package mutating func mayEnd() throws(Refusal) -> Bool {
            isEndAwaited = hasRest
            if isEndAwaited { return false }
            if !decoder.isComplete { throw .undecodable("it ends too early. Try again") }
            return true
        }

        /// Decompresses and delivers bytes until delivery is paused, and returns the number of bytes that were used.
        private mutating func decode(_ bytes: UnsafeRawBufferPointer, _ listener: Listener) throws(Refusal) -> Int {
            var used = 0
            var refusal: Refusal?
            withUnsafeTemporaryAllocation(byteCount: 32 << 10, alignment: 1) { room in
                while refusal == nil, used < bytes.count || isDecoderFull, listener.mayReport() {
                    switch decoder.decode(UnsafeRawBufferPointer(rebasing: bytes[used...]), into: room) {
                    case .refused(let reason): refusal = .undecodable(reason)
                    case .portion(let count, let made):
                        used += count
                        isDecoderFull = made == room.count
                        decodedCount += Int64(made)
                        if made == 0 { continue }
                        if isExpanded { refusal = .expanded } else { listener.report(.init(rebasing: room[..<made])) }
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

    /// A decoder that decompresses the body of a response in portions, and knows whether the body is complete.
    ///
    /// libcurl could decompress bodies as well, but it treats a truncated body as complete. The decoder uses the zlib
    /// that libcurl has loaded.
    package final class ContentDecoder {
        package enum Outcome: Equatable {
            /// The numbers of bytes that were used and made.
            case portion(used: Int, made: Int)
            case refused(String)
        }

        private enum State {
            case fresh
            case running(OpaquePointer)
            /// A stream ended, and another one may follow.
            case between(OpaquePointer)
        }

        /// Whether bodies can be decompressed on this system.
        static let isAvailable = OKInflateLoad()

        /// The codings that requests accept.
        static let codings = "gzip, deflate"

        /// The maximum number of zeros that may follow the end.
        ///
        /// No block of a disk or a tape is larger.
        package static let mostPadding = 1 << 20

        private let isGzip: Bool
        private var padding = 0
        private var state = State.fresh

        /// Creates a decoder, or returns `nil` if the coding is unknown or nothing can be decompressed on this system.
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
                    return .refused("the process is out of memory")
                }
                stream = made
            case (.between, 0?) where isGzip:
                // Some servers fill their last block with zeros. RFC 1952 does not mention this, and browsers ignore
                // the zeros.
                let count = input.prefix { $0 == 0 }.count
                padding += count
                return padding > Self.mostPadding
                    ? .refused("too many zeros follow its end") : .portion(used: count, made: 0)
            case (.between(let ended), let first?):
                guard isGzip, first == 0x1F, OKInflateReset(ended) else {
                    return .refused("other data follows its end")
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

        /// Returns whether a "deflate" body has the header of zlib, which some servers leave out.
        private static func hasHeader(_ byte: UInt8) -> Bool { byte & 0x0F == 8 && byte >> 4 <= 7 }
    }
#endif
