// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// A task of a ``StubSession``: plays the steps of an answer on the session's queue, as far as the brakes allow.
final class StubTask: NetworkTask {
    private let request: NetworkRequest
    private let session: StubSession
    private let life = Locked(StubTaskState())
    private let receiver: Locked<(any NetworkReceiver)?>
    private let upload: StubUpload

    init(_ request: NetworkRequest, _ receiver: any NetworkReceiver, _ session: StubSession) {
        self.request = request
        self.session = session
        self.receiver = Locked(receiver)
        upload = StubUpload(request.body, keeping: session.keptBodyBytes)
    }

    func resume() {
        let isFirst = life.withLock { $0.resume() }
        if isFirst, !session.begin(self) { sessionClosed() }
        play()
    }

    func suspend() { life.withLock { $0.isSuspended = true } }
    func hold() { life.withLock { $0.isHeld = true } }

    func proceed() {
        life.withLock { $0.isHeld = false }
        play()
    }

    func cancel() {
        life.withLock { $0.stop(.cancelled) }
        play()
    }

    func sessionClosed() {
        life.withLock { $0.stop(.sessionClosed) }
        play()
    }

    /// One step after another, never two at once: the queue is serial.
    private func play() {
        session.queue.async { [self] in
            while let action = life.withLock({ $0.next() }) { perform(action) }
        }
    }

    private func perform(_ action: StubTaskState.Action) {
        switch action {
        case .send: send()
        case .tell(let step): tell(step)
        case .awaitGate(let gate, let wait): gate.whenOpen { [self] in goOn(after: wait) }
        case .awaitTime(let duration, let wait):
            _ = session.clock.schedule(after: duration) { [self] in goOn(after: wait) }
        case .end(let end): tellEnd(end)
        }
    }

    private func goOn(after wait: StubTaskState.Wait) {
        life.withLock { $0.goOn(after: wait) }
        play()
    }

    private func send() {
        do {
            let waker = BodyWaker { [self] in goOn(after: .body) }
            guard let portion = try upload.read(waker) else { return }
            if let count = portion.count { tellSent(count) }
            guard portion.isLast else { return life.withLock { $0.goOn(after: .body) } }
            guard !life.withLock({ $0.isStopped }) else { return }
            let seen = StubRequest(
                method: request.method, url: request.url, headers: request.headers, body: upload.bytes,
                options: request.options, bodyCount: upload.count, bodyHash: upload.hash())
            let answer = session.answer(to: seen)
            life.withLock { $0.answer(answer.steps) }
        } catch {
            life.withLock { $0.stop(.bodyUnreadable) }
        }
    }

    private func tellSent(_ count: Int64) {
        guard !life.withLock({ $0.isStopped }) else { return }
        receiver.withLock { $0 }?.task(self, didSend: count, of: request.body.length)
    }

    private func tell(_ step: StubAnswer.Step) {
        guard let receiver = receiver.withLock({ $0 }) else { return }
        switch step.kind {
        case .head(let status, let headers):
            let head = ResponseHead(url: request.url, status: status, headers: headers)
            if status < 200 {
                receiver.task(self, didReceiveInformational: head)
            } else {
                receiver.task(self, didReceive: head)
            }
        case .wholeHead(let head): receiver.task(self, didReceive: head)
        case .bytes(let data):
            if !data.isEmpty { data.withUnsafeBytes { receiver.task(self, didReceive: $0) } }
        case .trailers(let fields): receiver.task(self, didReceiveTrailers: fields)
        case .gate, .pause, .failure, .error: break
        }
    }

    private func tellEnd(_ end: StubEnd?) {
        session.end(self)
        let receiver = receiver.withLock { exchange(&$0, with: nil) }
        let phase = life.withLock { $0.phase }
        receiver?.task(self, didEndWith: end.map { error(for: $0, in: phase) })
    }

    private func error(for end: StubEnd, in phase: NetworkError.Phase) -> NetworkError {
        switch end {
        case .code(let code):
            return NetworkError(
                code: code, phase: phase, message: "The stub session ended the task: \(code).",
                request: request.summary)
        case .error(var error):
            error.request = error.request ?? request.summary
            return error
        }
    }
}

/// Why a task of a stub session ends before its time.
enum StubEnd: Sendable {
    case code(NetworkError.Code)
    case error(NetworkError)
}

extension StubAnswer.Step {
    /// The end that the step is, if it is one.
    fileprivate var end: StubEnd? {
        switch kind {
        case .failure(let code): .code(code)
        case .error(let error): .error(error)
        default: nil
        }
    }
}

/// The life of a task of a stub session: what is to be done next, given what is wanted.
struct StubTaskState {
    enum Action {
        /// Read a portion of the request's body; after the last, ask for the answer.
        case send
        case tell(StubAnswer.Step)
        case awaitGate(Gate, Wait)
        case awaitTime(Duration, Wait)
        case end(StubEnd?)
    }

    /// What it waits for.
    enum Wait: Equatable {
        /// The body's producer, or the end of the call that reads from it.
        case body
        /// A gate or a time; the number tells one from another.
        case step(Int)
    }

    private enum State {
        case created
        case sending
        case answering(ArraySlice<StubAnswer.Step>)
        /// The end is decided.
        case stopped(StubEnd)
        case ended
    }

    private var state = State.created
    private(set) var phase = NetworkError.Phase.waiting
    var isSuspended = false
    var isHeld = false
    private var wait: Wait?
    private var stepCount = 0

    /// True if it is the first time.
    mutating func resume() -> Bool {
        isSuspended = false
        guard case .created = state else { return false }
        state = .sending
        return true
    }

    /// Whether the end is decided.
    var isStopped: Bool {
        switch state {
        case .stopped, .ended: true
        case .created, .sending, .answering: false
        }
    }

    /// What was waited for has come; it may also come too late, and then nothing happens.
    mutating func goOn(after wait: Wait) {
        if self.wait == wait { self.wait = nil }
    }

    mutating func answer(_ steps: [StubAnswer.Step]) {
        guard case .sending = state else { return }
        state = .answering(steps[...])
        phase = .awaitingResponse
        wait = nil
    }

    /// Decides the end, unless it is decided already.
    mutating func stop(_ code: NetworkError.Code) {
        switch state {
        case .stopped, .ended: break
        case .created, .sending, .answering: state = .stopped(.code(code))
        }
    }

    /// What is to be done now; nil if nothing.
    mutating func next() -> Action? {
        if case .stopped(let end) = state {
            state = .ended
            return .end(end)
        }
        guard !isSuspended, wait == nil else { return nil }
        switch state {
        case .created, .stopped, .ended: return nil
        case .sending:
            phase = .sending
            wait = .body
            return .send
        case .answering(let steps): return next(of: steps)
        }
    }

    private mutating func next(of steps: ArraySlice<StubAnswer.Step>) -> Action? {
        guard let step = steps.first else {
            guard !isHeld else { return nil }
            state = .ended
            return .end(nil)
        }
        if let end = step.end {
            state = .ended
            return .end(end)
        }
        guard !isHeld else { return nil }
        state = .answering(steps.dropFirst())
        switch step.kind {
        case .gate(let gate): return .awaitGate(gate, beginWait())
        case .pause(let duration): return .awaitTime(duration, beginWait())
        case .head(let status, _): if status >= 200 { phase = .receiving }
        case .wholeHead: phase = .receiving
        case .bytes, .trailers, .failure, .error: break
        }
        return .tell(step)
    }

    private mutating func beginWait() -> Wait {
        stepCount += 1
        wait = .step(stepCount)
        return .step(stepCount)
    }
}

/// Reads the body of a request into memory; used on the queue of its session alone.
final class StubUpload: @unchecked Sendable {
    // Sendable: only the serial queue of the session touches it.

    struct Portion {
        /// How many bytes were read by now; nil if none came with this portion.
        var count: Int64?
        let isLast: Bool
    }

    private static let portionSize = 1 << 16

    private let body: RequestBody
    private let limit: Int
    private var producer: (any BodyProducer)?
    private var checksum = SHA256()
    /// The bytes: the first of them, if there are more than are kept.
    private(set) var bytes = Data()
    /// How many there were so far.
    private(set) var count = 0

    /// - Parameter limit: How many bytes are kept in memory; all if nil, and then there is no checksum.
    init(_ body: RequestBody, keeping limit: Int?) {
        self.body = body
        self.limit = limit ?? .max
    }

    /// The SHA-256 of all bytes; empty if they are all kept.
    ///
    /// To be asked once, at the end.
    func hash() -> String { limit == .max ? "" : checksum.finish().hexadecimal }

    /// Reads the next portion; nil if the producer has nothing yet and will use the waker.
    func read(_ waker: BodyWaker) throws -> Portion? {
        switch body.source {
        case .none: return Portion(isLast: true)
        case .data(let data): take(data)
        case .file(let region): try read(region)
        case .stream(let makeProducer):
            let producer = try self.producer ?? makeProducer()
            self.producer = producer
            return try read(from: producer, waker)
        }
        return Portion(count: Int64(count), isLast: true)
    }

    private func read(_ region: FileRegion) throws {
        let file = try FileHandle(forReadingFrom: region.url)
        defer { try? file.close() }
        try file.seek(toOffset: UInt64(region.offset))
        while count < region.length {
            let wanted = min(Int(region.length) - count, Self.portionSize)
            guard let portion = try file.read(upToCount: wanted), !portion.isEmpty else { return }
            take(portion)
        }
    }

    private func read(from producer: any BodyProducer, _ waker: BodyWaker) throws -> Portion? {
        var buffer = [UInt8](repeating: 0, count: Self.portionSize)
        switch try buffer.withUnsafeMutableBytes({ try producer.produce(into: $0, waker: waker) }) {
        case .bytes(let count):
            // A test's own producer may say anything.
            take(Data(buffer.prefix(max(count, 0))))
            return Portion(count: Int64(self.count), isLast: false)
        case .notYet: return nil
        case .end: return Portion(isLast: true)
        }
    }

    private func take(_ data: Data) {
        count += data.count
        if bytes.count < limit { bytes += data.prefix(limit - bytes.count) }
        if limit != .max { data.withUnsafeBytes { checksum.update($0) } }
    }
}

extension [UInt8] {
    /// The bytes as text, two digits each.
    var hexadecimal: String { map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
}
