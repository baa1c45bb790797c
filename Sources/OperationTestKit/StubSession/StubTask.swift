// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// A task of a ``StubSession``: plays the steps of an answer on the session's queue, as far as the brakes allow.
final class StubTask: NetworkTask {
    private let request: NetworkRequest
    private let session: StubSession
    private let life = Locked(StubLife())
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

    private func perform(_ action: StubLife.Action) {
        switch action {
        case .send: send()
        case .tell(let step): tell(step)
        case .awaitGate(let gate, let wait): gate.whenOpen { [self] in goOn(after: wait) }
        case .awaitTime(let duration, let wait):
            _ = session.clock.schedule(after: duration) { [self] in goOn(after: wait) }
        case .end(let end): tellEnd(end)
        }
    }

    private func goOn(after wait: StubLife.Wait) {
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
