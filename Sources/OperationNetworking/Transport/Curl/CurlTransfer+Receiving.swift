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
#endif
