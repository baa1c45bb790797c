// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
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

/// Tests a hold that a receiver sets within a call while another thread is about to make the next call.
@Suite(.timeLimit(.minutes(3)))
struct ExchangeHoldTests {
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
