// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit
import Testing

@testable import OperationCore

@Suite(.timeLimit(.minutes(1)))
struct LockedTests {
    @Test func `no change is lost when eight threads use the same lock`() async throws {
        let count = Counted()
        try await TestThread.run {
            ThreadTeam(count: 8).run((0..<8).map { _ in { for _ in 0..<20_000 { count.add() } } })
        }
        #expect(count.value == 160_000)
    }

    @Test func `waiting threads get the lock after the holder releases it`() async throws {
        let count = Counted()
        try await TestThread.run {
            let (holds, waiters) = (DispatchSemaphore(value: 0), 4)
            let holder: @Sendable () -> Void = {
                count.hold {
                    for _ in 0..<waiters { holds.signal() }
                    // Holds the lock longer than all attempts of the other threads take.
                    var wait = LockWait()
                    for _ in 0..<20 * waiters * 50 { wait.letOthersRun() }
                }
            }
            let waiter: @Sendable () -> Void = {
                holds.wait()
                for _ in 0..<1_000 { count.add() }
            }
            ThreadTeam(count: waiters + 1).run([holder] + Array(repeating: waiter, count: waiters))
        }
        #expect(count.value == 4_000)
    }

    @Test func `a thread yields 50 times before it blocks in the kernel`() {
        var wait = LockWait()
        for _ in 0..<49 { wait.letOthersRun() }
        #expect(!wait.mustBlock)
        wait.letOthersRun()
        #expect(wait.mustBlock)
    }

    @Test func `an error that is thrown while the lock is held releases the lock`() {
        struct Refusal: Error {}
        let lock = Locked(0)
        #expect(throws: Refusal.self) { try lock.withLock { _ in throw Refusal() } }
        #expect(lock.withLock { $0 } == 0)
    }
}

private final class Counted: Sendable {
    private let count = Locked(0)

    var value: Int { count.withLock { $0 } }
    func add() { count.withLock { $0 += 1 } }
    func hold(_ body: () -> Void) { count.withLock { _ in body() } }
}
