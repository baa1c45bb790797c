// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// A task of a ``StubSession``, which plays the steps of a response on the session's queue unless it is suspended or
/// held.
final class StubTask: NetworkTask {
    private let request: NetworkRequest
    private let session: StubSession
    private let life = Locked(StubTaskState())
    private let receiver: Locked<(any NetworkReceiver)?>
    private let upload: StubUpload
    /// Ends the wait for a gate or a pause.
    private let stopWaiting = Locked<(@Sendable () -> Void)?>(nil)

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

    /// Plays one step after another, never concurrently, because the queue is serial.
    private func play() {
        session.queue.async { [self] in
            while let action = life.withLock({ $0.next() }) { perform(action) }
        }
    }

    private func perform(_ action: StubTaskState.Action) {
        switch action {
        case .send: send()
        case .report(let step): report(step)
        case .awaitGate(let gate, let wait):
            let number = gate.whenOpen { [self] in resume(after: wait) }
            if let number { storeStop { gate.stopWaiting(number) } }
        case .awaitTime(let duration, let wait):
            let timer = session.clock.schedule(after: duration) { [self] in resume(after: wait) }
            storeStop { timer.cancel() }
        case .end(let end): reportEnd(end)
        }
    }

    /// Stores the closure that ends a wait, in case the task ends first.
    private func storeStop(_ stop: @escaping @Sendable () -> Void) {
        // The closure of the previous wait may hold other objects, so it is released after the lock.
        stopWaiting.release { exchange(&$0, with: stop) }
    }

    private func resume(after wait: StubTaskState.Wait) {
        life.withLock { $0.resume(after: wait) }
        play()
    }

    private func send() {
        do {
            let waker = BodyWaker { [self] in resume(after: .body) }
            guard let portion = try upload.read(waker) else { return }
            if let count = portion.count { reportSent(count) }
            guard portion.isLast else { return life.withLock { $0.resume(after: .body) } }
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

    private func reportSent(_ count: Int64) {
        guard !life.withLock({ $0.isStopped }) else { return }
        receiver.withLock { $0 }?.task(self, didSend: count, of: request.body.length)
    }

    private func report(_ step: StubAnswer.Step) {
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
        case .gate, .pause, .end: break
        }
    }

    private func reportEnd(_ end: StubEnd?) {
        let stop = stopWaiting.withLock { exchange(&$0, with: nil) }
        stop?()
        session.end(self)
        let receiver = receiver.withLock { exchange(&$0, with: nil) }
        let phase = life.withLock { $0.phase }
        receiver?.task(self, didEndWith: end.map { error(for: $0, in: phase) })
    }

    private func error(for end: StubEnd, in phase: NetworkError.Phase) -> NetworkError {
        switch end {
        case .code(let code):
            // Without a response, a failure to connect occurs before the request is sent.
            let phase = phase == .awaitingResponse && code.isOfConnecting ? .connecting : phase
            return NetworkError(
                code: code, phase: phase, message: "The stub session ended the task: \(code).",
                request: request.summary)
        case .error(var error):
            error.request = error.request ?? request.summary
            return error
        }
    }
}

/// The reason why a task of a stub session ends early.
enum StubEnd: Sendable {
    case code(NetworkError.Code)
    case error(NetworkError)
}

extension NetworkError.Code {
    private static let ofConnecting: Set<Self> = [
        .cannotFindHost, .cannotConnect, .notConnected, .proxyFailed, .secureConnectionFailed, .untrustedCertificate,
        .clientCertificateRejected,
    ]

    /// Whether an error with this code occurs while a session establishes a connection.
    fileprivate var isOfConnecting: Bool { Self.ofConnecting.contains(self) }
}

/// The state of a stub task, which determines the next action.
struct StubTaskState {
    enum Action {
        /// Read a part of the request's body, and request the response after the last part.
        case send
        case report(StubAnswer.Step)
        case awaitGate(Gate, Wait)
        case awaitTime(Duration, Wait)
        case end(StubEnd?)
    }

    /// The event that the task waits for.
    enum Wait: Equatable {
        /// The producer of the body, or the end of a call that reads from it.
        case body
        /// A gate or a pause, with a number that identifies it.
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

    /// Resumes the task, and returns true the first time.
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

    /// Ends a wait, and does nothing if the event is late.
    mutating func resume(after wait: Wait) {
        if self.wait == wait { self.wait = nil }
    }

    mutating func answer(_ steps: [StubAnswer.Step]) {
        guard case .sending = state else { return }
        state = .answering(steps[...])
        phase = .awaitingResponse
        wait = nil
    }

    /// Decides the end, unless it is already decided.
    mutating func stop(_ code: NetworkError.Code) {
        switch state {
        case .stopped, .ended: break
        case .created, .sending, .answering: state = .stopped(.code(code))
        }
    }

    /// Returns the next action, or nil if there is none now.
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
        if case .end(let end) = step.kind {
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
        case .bytes, .trailers, .end: break
        }
        return .report(step)
    }

    private mutating func beginWait() -> Wait {
        stepCount += 1
        wait = .step(stepCount)
        return .step(stepCount)
    }
}

/// A reader for the body of a request, which is used only on the queue of its session.
final class StubUpload: @unchecked Sendable {
    // Sendable: it is accessed only on the serial queue of the session.

    struct Portion {
        /// The number of bytes so far, or nil if this part contains none.
        var count: Int64?
        let isLast: Bool
    }

    private static let portionSize = 1 << 16

    private let body: RequestBody
    private let limit: Int
    private var producer: (any BodyProducer)?
    private var checksum = SHA256()
    /// The bytes, up to the limit.
    private(set) var bytes = Data()
    /// The number of bytes so far.
    private(set) var count = 0

    /// - Parameter limit: The maximum number of bytes in memory, or nil for no limit and no checksum.
    init(_ body: RequestBody, keeping limit: Int?) {
        self.body = body
        self.limit = limit ?? .max
    }

    /// Returns the SHA-256 checksum of all bytes, or an empty string if there is no limit.
    ///
    /// Call this method once, at the end.
    func hash() -> String { limit == .max ? "" : Hexadecimal.lower(checksum.finish()) }

    /// Reads the next part, or returns nil if the producer has no data yet and will call the waker.
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
            // A producer in a test may return any number.
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
