// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Synchronization
import Testing

@testable import opget

@Suite("A limit holds transfers, and lets them go on")
struct LimitedSessionTests {
    /// A session of one task, whose bytes a test brings.
    private final class Source: NetworkSession, NetworkTask {
        private let state = Mutex((receiver: (any NetworkReceiver)?.none, isHeld: false))

        func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
            state.withLock { $0.receiver = receiver }
            return self
        }

        var isHeld: Bool { state.withLock { $0.isHeld } }
        func resume() {}
        func suspend() {}
        func cancel() {}
        func hold() { state.withLock { $0.isHeld = true } }
        func proceed() { state.withLock { $0.isHeld = false } }

        func bring(_ count: Int) {
            let receiver = state.withLock { $0.receiver }
            [UInt8](repeating: 1, count: count).withUnsafeBytes { receiver?.task(self, didReceive: $0) }
        }

        func end() { state.withLock { $0.receiver }?.task(self, didEndWith: nil) }
    }

    private final class Counter: NetworkReceiver {
        let seen = Mutex((bytes: 0, ends: 0))

        func task(_ task: any NetworkTask, didReceive head: ResponseHead) {}
        func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {
            seen.withLock { $0.bytes += bytes.count }
        }
        func task(_ task: any NetworkTask, didEndWith error: NetworkError?) { seen.withLock { $0.ends += 1 } }
    }

    private let clock = ManualClock(start: OperationInstant(offset: .seconds(10)))
    private let source = Source()
    private let counter = Counter()

    private func start(_ rate: Int) throws -> any NetworkTask {
        let url = try #require(URL(string: "http://example.com/"))
        let session = LimitedSession(over: source, bytesPerSecond: rate, clock: clock)
        return session.makeTask(with: try NetworkRequest(url: url), receiver: counter)
    }

    @Test func `what came too fast is held for as long as it should have taken`() throws {
        let task = try start(100_000)
        source.bring(10_000)
        #expect(!source.isHeld)
        source.bring(50_000)
        #expect(source.isHeld)
        clock.advance(by: .milliseconds(499))
        #expect(source.isHeld)
        clock.advance(by: .milliseconds(1))
        #expect(!source.isHeld)
        source.end()
        #expect(counter.seen.withLock { $0 } == (60_000, 1))
        #expect(clock.pendingCount == 0)
        withExtendedLifetime(task) {}
    }

    @Test func `the receiver's brake and the limit's do not loose each other`() throws {
        let task = try start(100_000)
        source.bring(60_000)
        task.hold()
        clock.advance(by: .seconds(1))
        #expect(source.isHeld)
        task.proceed()
        #expect(!source.isHeld)
        source.bring(60_000)
        task.hold()
        task.proceed()
        #expect(source.isHeld)
        // More came all the same: it goes on when all of it had its time.
        source.bring(50_000)
        clock.advance(by: .milliseconds(500))
        #expect(source.isHeld)
        clock.advance(by: .milliseconds(500))
        #expect(!source.isHeld)
        source.end()
        #expect(clock.pendingCount == 0)
    }
}
