// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct ThreadTests {
    private struct Mistake: Error, Equatable {}

    @Test func `a test thread returns the result or throws the error of its closure`() async throws {
        #expect(try await TestThread.run { 5 } == 5)
        await #expect(throws: Mistake()) { try await TestThread.run { throw Mistake() } }
    }

    @Test func `a test thread is a new thread with the requested stack size`() async throws {
        let size = 8 << 20
        let names = try await TestThread.run(stackSize: size) { () -> Int in
            #expect(!Thread.isMainThread)
            return Thread.current.stackSize
        }
        #expect(names >= size)
        // Uses two megabytes of the stack.
        let sum = try await TestThread.run(stackSize: size) {
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 2 << 20) { buffer in
                buffer.initialize(repeating: 1)
                return buffer.reduce(0) { $0 + Int($1) }
            }
        }
        #expect(sum == 2 << 20)
    }

    @Test func `blocked test threads do not block each other`() async throws {
        let gate = Gate(), arrived = EventRecorder<Int>()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<50 {
                group.addTask {
                    try await TestThread.run {
                        arrived.record(number)
                        gate.wait()
                    }
                }
            }
            _ = await arrived.events(atLeast: 50)
            gate.open()
            try await group.waitForAll()
        }
        #expect(Set(arrived.events).count == 50)
    }

    @Test func `a team runs all closures at the same time, each on its own thread`() async throws {
        let threads = try await TestThread.run { () -> Int in
            let team = ThreadTeam(count: 4), seen = EventRecorder<UInt>(), meeting = Meeting(4)
            #expect(team.count == 4)
            // Each closure waits for all others, so running them one after another would never end.
            let meet: @Sendable () -> Void = {
                meeting.attend()
                seen.record(UInt(bitPattern: ObjectIdentifier(Thread.current).hashValue))
            }
            team.run([meet, meet, meet, meet])
            return Set(seen.events).count
        }
        #expect(threads == 4)
    }

    @Test func `run returns when all closures have returned, also with fewer closures than threads`() async throws {
        let counts = try await TestThread.run { () -> [Int] in
            let team = ThreadTeam(count: 4), seen = EventRecorder<Int>()
            return (0..<200).map { round in
                team.run((0..<(round % 5)).map { (number: Int) -> @Sendable () -> Void in { seen.record(number) } })
                return seen.count
            }
        }
        var sum = 0
        for (round, count) in counts.enumerated() {
            sum += round % 5
            #expect(count == sum)
        }
    }

    @Test func `a team releases its closures and ends its threads`() async throws {
        let census = LiveObjects()
        try await TestThread.run {
            for _ in 0..<50 {
                let team = census.track(ThreadTeam(count: 4)), object = census.track(Token())
                team.run([{ _ = object }, { _ = object }])
            }
        }
        #expect(census.types == [])
    }
}

private final class Token: Sendable {}

/// A meeting point at which all threads wait for each other.
private final class Meeting: Sendable {
    private let endWait = EventRecorder<Int>()
    private let gate = Gate()
    private let size: Int

    init(_ size: Int) { self.size = size }

    @available(*, noasync)
    func attend() {
        endWait.record(1)
        if endWait.count == size { gate.open() }
        gate.wait()
    }
}
