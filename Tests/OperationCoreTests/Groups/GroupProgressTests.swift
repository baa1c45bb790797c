// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// The progress of groups.
@Suite(.nothingStaysAlive, .timeLimit(.minutes(1)))
struct GroupProgressTests {
    /// An operation whose progress the test sets.
    private final class Measured: AsyncOperation<Int, Flaw>, MeasuredOperation, @unchecked Sendable {
        // Sendable: its state is behind a lock.
        private let done = Locked<Double?>(nil)

        var completedFraction: Double? { done.withLock { $0 } }

        override func main() {}

        func advance(to fraction: Double) {
            done.withLock { $0 = fraction }
            completedFractionDidChange()
        }
    }

    private func executing(_ children: [ManagedOperation]) async {
        for child in children { while !child.isExecuting { await Task.yield() } }
    }

    @Test func `children count by weight, and measured children by their completed fraction`() async throws {
        let (plain, measured) = (HandDriven("plain"), Measured())
        let group = GroupOperation(policy: .collectAll)
        try group.add(plain)
        try group.add(measured, weight: 3)
        #expect(group.groupProgress == GroupProgress(completedWeight: 0, totalWeight: 4))
        group.start()
        await executing([plain, measured])
        measured.advance(to: 0.5)
        #expect(group.groupProgress.completedWeight == 1.5 && group.groupProgress.fraction == 0.375)
        measured.advance(to: 0.25)
        #expect(group.groupProgress.completedWeight == 1.5)
        plain.finish(withError: .first)
        await plain.ended()
        while group.groupProgress.completedWeight < 2.5 { await Task.yield() }
        measured.finish(withResult: 1)
        await group.ended()
        #expect(group.groupProgress.completedWeight == 4)
    }

    @Test func `children that are canceled with the group do not count as progress`() async throws {
        for isCancelled in [true, false] {
            let children = (0..<10).map { HandDriven("\($0)") }
            let inner = GroupOperation(policy: .failFast)
            for _ in 0..<10 { try inner.add(HandDriven("beneath")) }
            let group = GroupOperation(policy: .failFast)
            for child in children { try group.add(child) }
            try group.add(inner)
            #expect(group.groupProgress.fraction == 0)
            group.start()
            await executing(children)
            children[0].finish(withResult: 1)
            while group.groupProgress.completedWeight < 1 { await Task.yield() }
            if isCancelled { group.cancel() } else { children[1].finish(withError: .first) }
            await group.ended()
            #expect(group.groupProgress.completedWeight == (isCancelled ? 1 : 2))
            #expect(inner.isCancelled && inner.groupProgress.fraction == 0)
        }
    }

    @Test func `progress with invalid numbers has the fraction 0`() {
        for (done, total) in [(Double.nan, 1), (1, .nan), (.infinity, .infinity), (-1, 1), (1, 0)] {
            let progress = GroupProgress(completedWeight: done, totalWeight: total)
            #expect(progress.fraction == 0 && progress.description.hasPrefix("0%"))
        }
    }

    @Test func `progress that is read late includes children that already ended, even in nested groups`() async throws {
        let (first, second, third) = (HandDriven("first"), Measured(), HandDriven("third"))
        let inner = GroupOperation(policy: .failFast)
        try inner.add([first, second])
        let outer = GroupOperation(policy: .failFast)
        try outer.add([inner, third])
        outer.start()
        await executing([first, second, third])
        await first.finishAndEnd(withResult: 1)
        while inner.presentCount > 1 { await Task.yield() }
        second.advance(to: 0.5)
        #expect(outer.groupProgress == GroupProgress(completedWeight: 0.75, totalWeight: 2))
        second.advance(to: 1)
        #expect(outer.groupProgress.completedWeight == 1 && outer.groupProgress.fraction == 0.5)
        second.finish(withResult: 1)
        third.finish(withResult: 1)
        await outer.ended()
        #expect(outer.groupProgress.fraction == 1)
    }

    @Test func `progress on the callback queue never decreases, and completes before the result`() async throws {
        let told = EventRecorder<Double>()
        let queue = DispatchQueue(label: "told")
        let group = GroupOperation.map(0..<200, width: 3) { number in
            GroupOperation.all((0..<3).map { part in ClosureOperation { number + part } })
        }
        group.callbackQueue = queue
        let end = Gate()
        group.groupProgressHandler = {
            dispatchPrecondition(condition: .onQueue(queue))
            told.record($0.fraction)
        }
        group.successHandler = { _ in
            told.record(2)
            end.open()
        }
        let foundation = group.progress
        #expect(group.groupProgress.totalWeight == 200)
        _ = try await group.run()
        await end.passage()
        await queue.drain()
        let events = told.events
        #expect(events == events.sorted() && events.suffix(2) == [1, 2] && Set(events).count == events.count)
        #expect(foundation.fractionCompleted == 1 && foundation.isFinished)
        #expect(group.groupProgressHandler == nil)
    }

    @Test func `a concurrent queue gets the complete progress once, and Foundation's progress ends`() async throws {
        let queue = DispatchQueue(label: "told", attributes: .concurrent)
        for round in 0..<Rounds.count(ci: 300, soak: 30_000) {
            let told = EventRecorder<Double>(), group = GroupOperation(policy: .collectAll)
            try group.add((0..<4).map { number in ClosureOperation { number } })
            group.callbackQueue = queue
            group.groupProgressHandler = { told.record($0.fraction) }
            let foundation = group.progress
            await group.startAndEnd()
            queue.sync(flags: .barrier) {}
            let isWhole = told.events.count { $0 == 1 } == 1 && foundation.fractionCompleted == 1
            #expect(isWhole, "round \(round): \(told.events), \(foundation.fractionCompleted)")
        }
    }

    @Test(arguments: [0, 2]) func `a group without any weight completes its progress`(children: Int) async throws {
        let told = EventRecorder<Double>(), group = GroupOperation(policy: .collectAll)
        for number in 0..<children { try group.add(ClosureOperation { number }, weight: 0) }
        let queue = DispatchQueue(label: "told")
        group.callbackQueue = queue
        group.groupProgressHandler = { told.record($0.fraction) }
        let foundation = group.progress
        await group.startAndEnd()
        await queue.drain()
        #expect(told.events == [1] && foundation.isFinished && group.groupProgress.fraction == 1)
    }

    @Test func `no progress is reported after a cancellation, and the group is freed`() async throws {
        let census = LiveObjects()
        await {
            let (first, second) = (HandDriven("first"), HandDriven("second"))
            let told = EventRecorder<Double>()
            let queue = DispatchQueue(label: "told")
            let group = census.track(GroupOperation.all([first, second]))
            group.callbackQueue = queue
            group.groupProgressHandler = { [weak group] in told.record($0.fraction + (group == nil ? 100 : 0)) }
            group.start()
            await executing([first, second])
            first.finish(withResult: 1)
            while told.count == 0 { await Task.yield() }
            group.cancel()
            second.finish(withResult: 1)
            await group.ended()
            #expect(await told.events(after: queue) == [0.5])
        }()
        #expect(try await TestThread.run { census.countAtRest() } == 0)
    }

    @Test func `Foundation's progress cancels the group, and expected weight counts before it is added`() async throws {
        let child = HandDriven("child")
        let group = GroupOperation { group in
            group.expect(totalWeight: 4)
            return try await group.run(ClosureOperation { 1 }) + group.run(child, weight: 3)
        }
        let progress = group.progress
        group.start()
        await executing([child])
        #expect(group.groupProgress == GroupProgress(completedWeight: 1, totalWeight: 4))
        progress.cancel()
        await group.ended()
        #expect(group.isCancelled && child.isCancelled)
    }

    @Test func `progress does not decrease when another operation replaces a child`() async throws {
        let (first, again) = (Measured(), Measured())
        let group = GroupOperation.all([first])
        group.recover { (failed: FailedChild<Int>) in .operation(again) }
        #expect(group.groupProgress.fraction == 0)
        group.start()
        await executing([first])
        first.advance(to: 0.6)
        first.finish(withError: .first)
        await executing([again])
        again.advance(to: 0.3)
        #expect(group.groupProgress.fraction == 0.6)
        again.advance(to: 0.8)
        #expect(group.groupProgress.fraction == 0.8)
        again.finish(withResult: 1)
        await group.ended()
    }

    @Test func `with random events, progress stays between 0 and 1 and never decreases`() {
        for seed in Rounds.firstSeed..<Rounds.firstSeed + UInt64(Rounds.count(ci: 500, soak: 50_000)) {
            var random = SeededGenerator(seed: seed)
            var meter = GroupMeter()
            let weights = (0..<8).map { _ in
                [1, 1, 2, 0.5, 0, -3, .nan, .infinity][Int.random(in: 0..<8, using: &random)] as Double
            }
            for (slot, weight) in weights.enumerated() { meter.add(GroupMachine.Slot(slot), weight: weight) }
            meter.isOn = true
            var present = Set(weights.indices.map { GroupMachine.Slot($0) })
            var last = meter.progress
            while let slot = present.randomElement(using: &random) {
                if random.chance(1, in: 4) {
                    meter.end(slot)
                    present.remove(slot)
                } else {
                    _ = meter.mark(slot, [0, 0.3, 1, 7, -1, .nan][Int.random(in: 0..<6, using: &random)])
                }
                let now = meter.progress
                let isSound = now.fraction >= last.fraction - 1e-9 && now.fraction <= 1 && now.completedWeight.isFinite
                if !isSound {
                    Issue.record("seed \(seed): \(last) \(now)")
                    return
                }
                last = now
            }
            #expect(last.fraction == 1 || last.totalWeight == 0, "seed \(seed)")
        }
    }
}
