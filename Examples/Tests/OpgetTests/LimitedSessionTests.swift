// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Synchronization
import Testing

@testable import opget

@Suite("Rate limits of transfers")
struct LimitedSessionTests {
    /// A session with one task, whose bytes the test delivers.
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
        func hold() {
            Self.runNext(of: whenHolding)
            state.withLock { $0.isHeld = true }
        }
        func proceed() {
            state.withLock { $0.isHeld = false }
            Self.runNext(of: whenProceeding)
        }

        /// The steps of other threads within the next calls of `hold()`, before the task is held.
        let whenHolding = Mutex<[@Sendable () -> Void]>([])
        /// The steps of other threads within the next calls of `proceed()`, after the task was released.
        let whenProceeding = Mutex<[@Sendable () -> Void]>([])

        private static func runNext(of steps: borrowing Mutex<[@Sendable () -> Void]>) {
            let next = steps.withLock { steps in steps.isEmpty ? nil : steps.removeFirst() }
            next?()
        }

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
    private let queue = DispatchQueue(label: "opget.limit")

    /// Waits until the session has released the task, if it is about to.
    private func settle() {
        for _ in 0..<3 { queue.sync {} }
    }

    private func start(_ rate: Int) throws -> any NetworkTask {
        let url = try #require(URL(string: "http://example.com/"))
        let session = LimitedSession(over: source, bytesPerSecond: rate, clock: clock, queue: queue)
        return session.makeTask(with: try NetworkRequest(url: url), receiver: counter)
    }

    @Test func `bytes that arrive too fast hold the transfer until the rate allows more`() throws {
        let task = try start(100_000)
        source.bring(10_000)
        #expect(!source.isHeld)
        source.bring(50_000)
        #expect(source.isHeld)
        clock.advance(by: .milliseconds(499))
        settle()
        #expect(source.isHeld)
        clock.advance(by: .milliseconds(1))
        settle()
        #expect(!source.isHeld)
        source.end()
        #expect(counter.seen.withLock { $0 } == (60_000, 1))
        #expect(clock.pendingCount == 0)
        withExtendedLifetime(task) {}
    }

    @Test func `holds by the receiver and by the limit are independent`() throws {
        let task = try start(100_000)
        source.bring(60_000)
        task.hold()
        clock.advance(by: .seconds(1))
        settle()
        #expect(source.isHeld)
        task.proceed()
        settle()
        #expect(!source.isHeld)
        source.bring(60_000)
        task.hold()
        task.proceed()
        settle()
        #expect(source.isHeld)
        // More bytes arrive nevertheless. The task resumes when the time for all bytes is over.
        source.bring(50_000)
        clock.advance(by: .milliseconds(500))
        settle()
        #expect(source.isHeld)
        clock.advance(by: .milliseconds(500))
        settle()
        #expect(!source.isHeld)
        source.end()
        #expect(clock.pendingCount == 0)
    }

    @Test func `a pause that begins and ends within proceed does not leave the task held`() throws {
        let task = try start(100_000)
        // The task receives bytes and their pause ends before `proceed()` returns, twice.
        let more: @Sendable () -> Void = { [source, clock] in
            source.bring(60_000)
            clock.advance(by: .seconds(1))
        }
        source.whenProceeding.withLock { $0 = [more, more] }
        source.bring(60_000)
        #expect(source.isHeld)
        clock.advance(by: .seconds(1))
        settle()
        #expect(!source.isHeld)
        source.end()
        #expect(counter.seen.withLock { $0 } == (180_000, 1))
        withExtendedLifetime(task) {}
    }

    @Test func `a pause that begins within proceed holds the task`() throws {
        let task = try start(100_000)
        source.whenProceeding.withLock { $0 = [{ [source] in source.bring(60_000) }] }
        source.bring(60_000)
        clock.advance(by: .milliseconds(500))
        settle()
        #expect(source.isHeld)
        clock.advance(by: .seconds(1))
        settle()
        #expect(!source.isHeld)
        source.end()
        withExtendedLifetime(task) {}
    }

    @Test func `a hold that takes effect after its release does not leave the task held`() throws {
        let task = try start(100_000)
        // The receiver's thread releases the task, and the session has done so, before the hold takes effect.
        source.whenHolding.withLock {
            $0 = [
                { [queue] in
                    task.proceed()
                    queue.sync {}
                }
            ]
        }
        task.hold()
        settle()
        #expect(!source.isHeld)
        source.end()
    }

    @Test func `a task is released whatever the order of bytes, pauses and the receiver's holds`() throws {
        try Explorer.explore(rounds: 300) { explorer in
            let (clock, source) = (ManualClock(start: OperationInstant(offset: .seconds(10))), Source())
            let queue = DispatchQueue(label: "opget.limit")
            let session = LimitedSession(over: source, bytesPerSecond: 100_000, clock: clock, queue: queue)
            guard let url = URL(string: "http://example.com/") else { return }
            let task = session.makeTask(with: try NetworkRequest(url: url), receiver: Counter())
            // Other threads perform these steps within `hold()` and `proceed()`. The queue cannot wait for itself.
            let key = DispatchSpecificKey<Bool>()
            queue.setSpecific(key: key, value: true)
            let steps: [@Sendable () -> Void] = [
                { source.bring(20_000) }, { clock.advance(by: .seconds(3)) }, { task.hold() },
                { task.proceed() }, { if DispatchQueue.getSpecific(key: key) == nil { queue.sync {} } },
            ]
            func plan() -> [@Sendable () -> Void] {
                (0..<4).map { _ in
                    let chosen = (0..<4).compactMap { _ in steps.randomElement(using: &explorer.random) }
                    return { for step in chosen { step() } }
                }
            }
            let (duringProceed, duringHold) = (plan(), plan())
            source.whenProceeding.withLock { $0 = duringProceed }
            source.whenHolding.withLock { $0 = duringHold }
            var portions = [60_000, 30_000, 60_000, 20_000]
            explorer.add("bytes") { _ in
                guard let portion = portions.last else { return false }
                // No bytes arrive while the task is held.
                if source.isHeld { return nil }
                portions.removeLast()
                source.bring(portion)
                return true
            }
            explorer.add("time", { clock.advance(by: .milliseconds(200)) }, { clock.advance(by: .seconds(1)) })
            explorer.add("receiver", { task.hold() }, { task.proceed() }, { task.hold() }, { task.proceed() })
            explorer.run {
                for _ in 0..<8 { queue.sync {} }
                return true
            }
            source.whenProceeding.withLock { $0 = [] }
            source.whenHolding.withLock { $0 = [] }
            task.proceed()
            for _ in 0..<8 {
                clock.advance(by: .seconds(20))
                queue.sync {}
            }
            try explorer.expect(!source.isHeld, "The task is held although nothing holds it.")
            source.end()
        }
    }
}
