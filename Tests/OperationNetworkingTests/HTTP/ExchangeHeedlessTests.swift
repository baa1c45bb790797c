// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// A session whose only task does nothing.
///
/// The test calls the receiver instead.
private final class SilentSession: NetworkSession {
    final class SilentTask: IdleTask {
        let proceeds = Tally()

        func proceed() { proceeds.add() }
    }

    let task = SilentTask()
    private let made = Locked<(any NetworkReceiver)?>(nil)

    var receiver: (any NetworkReceiver)? { made.withLock { $0 } }

    func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        made.withLock { $0 = receiver }
        return task
    }
}

@Suite(.timeLimit(.minutes(1)))
struct ExchangeHeedlessTests {
    private let first = URL(string: "http://heedless.test/first")
    private let all = Gate()

    private func isFirst(_ url: URL) -> Bool { url.path == "/first" }

    /// An exchange whose first response is a redirect with a body, followed by `end`.
    ///
    /// Its tasks ignore suspend and hold, and deliver everything while they are resumed.
    private func session(
        _ decision: RedirectDecision, end: @escaping @Sendable () -> NetworkError?
    ) -> ExchangeSession {
        let heedless = ClosureSession { [self] request, receiver in
            let (url, left) = (request.url, Shared<(any NetworkReceiver)?>(receiver))
            return ClosureTask { [self] task in
                guard let receiver = left.take() else { return }
                var head = ResponseHead(url: url, status: 200, headers: ["Content-Length": "4"])
                if isFirst(url) { head = ResponseHead(url: url, status: 302, headers: ["Location": "/next"]) }
                receiver.task(task, didReceive: head)
                Array("body".utf8).withUnsafeBytes { receiver.task(task, didReceive: $0) }
                receiver.task(task, didEndWith: isFirst(url) ? end() : nil)
                all.open()
            }
        }
        return ExchangeSession.over(heedless) {
            $0.redirects = .deciding { [all] _ in
                await all.passage()
                return decision
            }
        }
    }

    @Test func `a redirect whose response ended despite a hold can be followed`() async throws {
        let probe = RecordingReceiver()
        let session = session(.follow) { nil }
        session.makeTask(with: try NetworkRequest(url: #require(first)), receiver: probe).resume()
        let seen = await probe.end()
        #expect(seen.status == 200 && seen.text == "body" && seen.error == nil && seen.isOrderly)
    }

    @Test func `a response whose body arrived despite a hold fails with truncatedBody`() async throws {
        let probe = RecordingReceiver()
        let session = session(.stop) { nil }
        session.makeTask(with: try NetworkRequest(url: #require(first)), receiver: probe).resume()
        let seen = await probe.end()
        #expect(seen.status == 302 && seen.text.isEmpty && seen.isOrderly)
        #expect(seen.error?.code == .truncatedBody)
    }

    @Test func `an error's cause may cancel the task while it is deallocated`() async throws {
        for (decision, isLeft) in [(RedirectDecision.follow, true), (.stop, false)] {
            let probe = RecordingReceiver()
            let present = Locked<(any NetworkTask)?>(nil)
            let said = Gate()
            let session = session(decision) {
                var error = NetworkError(code: .connectionLost, phase: .receiving, message: "")
                error.cause = LastWord {
                    present.withLock { $0 }?.cancel()
                    said.open()
                }
                return error
            }
            let task = session.makeTask(with: try NetworkRequest(url: #require(first)), receiver: probe)
            present.withLock { $0 = task }
            task.resume()
            if isLeft { try await said.passage(within: .seconds(10)) }
            let seen = await probe.end()
            #expect(seen.isOrderly)
            #expect(seen.error?.code == (isLeft ? .cancelled : .connectionLost) || isLeft && seen.status == 200)
            let left = present.withLock { exchange(&$0, with: nil) }
            withExtendedLifetime(left) {}
        }
    }

    @Test
    func `headers approved by a redirect policy are not delivered if the previous call holds the task`() async throws {
        let transport = SilentSession()
        let (asked, decided) = (Gate(), Gate())
        let session = ExchangeSession.over(transport) {
            $0.redirects = .deciding { _ in
                asked.open()
                await decided.passage()
                return .stop
            }
        }
        let receiver = RecordingReceiver { event, task in
            guard case .sent = event else { return }
            let before = transport.task.proceeds.count
            decided.open()
            // Gives the policy's thread time to deliver the headers. The test also passes if they arrive later.
            for _ in 0..<300 where transport.task.proceeds.count == before { sched_yield() }
            task.hold()
        }
        let url = try #require(URL(string: "https://h.com/a"))
        let task = session.makeTask(
            with: try NetworkRequest("POST", url: url, body: .data(Data("ab".utf8))), receiver: receiver)
        task.resume()
        let inner = try #require(transport.receiver)
        let head = ResponseHead(url: url, status: 302, headers: ["Location": "/b"])
        inner.task(transport.task, didReceive: head)
        await asked.passage()
        try await TestThread.run { inner.task(transport.task, didSend: 1, of: 2) }
        #expect(receiver.record.sent == 1 && receiver.record.head == nil)
        task.proceed()
        let record = await receiver.record { $0.head != nil }
        #expect(record.status == 302)
        inner.task(transport.task, didEndWith: nil)
        #expect(await receiver.end().isSuccess && receiver.record.faults.isEmpty)
    }
}
