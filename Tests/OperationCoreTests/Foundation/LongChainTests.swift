// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Foundation's graph: long chains", .serialized, .timeLimit(.minutes(Rounds.minutes)))
struct LongChainTests {
    /// The state of a chain when it is released.
    enum Fate: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case untouched, cancelled, kept, halfRun, branched
        var testDescription: String { rawValue }

        var length: Int {
            self == .untouched ? 200_000 : Rounds.count(ci: 40_000, soak: 1_000_000)
        }
    }

    private static let smallStack = 512 << 10

    @Test(arguments: Fate.allCases)
    func `L10: a long chain of operations is released on a small stack`(fate: Fate) async throws {
        let length = fate.length
        let freed = try await TestThread.run(stackSize: Self.smallStack) {
            let freed = Arrivals(length)
            autoreleasing {
                let trace = { Trace(freed) }
                var last = HeldWork(trace: trace())
                for number in 1..<length {
                    let next = HeldWork(trace: trace()) { $0.finish(withResult: 1) }
                    next.addDependency(last)
                    switch fate {
                    case .untouched: break
                    case .cancelled: last.cancel()
                    case .kept: last.finish(withResult: number)
                    case .halfRun where number == 1:
                        last.startAndFinish(withResult: number)
                    case .halfRun: if number < length / 2 { last.start() }
                    case .branched: if number.isMultiple(of: 1_000) { QuickWork().addDependency(next) }
                    }
                    last = next
                }
            }
            return freed
        }
        #expect(try await TestThread.run { freed.haveAllCome() })
        #expect(freed.missingCount == 0)
    }

    @Test
    func `L10: a long chain of alternating managed and plain operations is released on a small stack`() async throws {
        let length = Rounds.count(ci: 20_000, soak: 100_000)
        let freed = try await TestThread.run(stackSize: Self.smallStack) {
            let freed = Arrivals(2 * length)
            autoreleasing {
                var last = QuickWork(trace: Trace(freed))
                for number in 1...length {
                    let foreign = ForeignQuickWork(trace: Trace(freed))
                    foreign.addDependency(last)
                    guard number < length else { break }
                    last = QuickWork(trace: Trace(freed))
                    last.addDependency(foreign)
                }
            }
            return freed
        }
        #expect(try await TestThread.run { freed.haveAllCome() })
    }

    @Test func `L10: an operation and its many dependencies are released on a small stack`() async throws {
        let count = Rounds.count(ci: 50_000, soak: 1_000_000)
        let freed = try await TestThread.run(stackSize: Self.smallStack) {
            let freed = Arrivals(count)
            autoreleasing {
                let last = HeldWork()
                for _ in 0..<count { last.addDependency(HeldWork(trace: Trace(freed))) }
            }
            return freed
        }
        #expect(try await TestThread.run { freed.haveAllCome() })
    }

    @Test(arguments: [1, -1])
    func `L11: a chain of operations added in reverse order runs in dependency order`(width: Int) async throws {
        // Foundation's queue takes quadratic time for this if it has free slots.
        let length = Rounds.count(ci: width == 1 ? 1_000 : 500, soak: 2_000)
        let order = EventRecorder<Int>()
        let ended = Arrivals(length)
        let isDone = try await TestThread.run {
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = width
            let chain = (0..<length).map { number in
                let operation = QuickWork { _ in order.record(number) }
                operation.completionBlock = { ended.arrive() }
                return operation
            }
            for (operation, next) in zip(chain, chain.dropFirst()) { next.addDependency(operation) }
            for operation in chain.reversed() { queue.addOperation(operation) }
            return ended.haveAllCome() && queue.operationCount == 0
        }
        #expect(isDone)
        #expect(order.events == Array(0..<length))
    }

    @Test func `L12: a fan of 500 operations added in reverse order runs in dependency order`() async throws {
        let order = EventRecorder<String>()
        let ended = Arrivals(502)
        let isDone = try await TestThread.run {
            let queue = OperationQueue()
            let first = QuickWork { _ in order.record("first") }
            let middle = (0..<500).map { _ in QuickWork { _ in order.record("middle") } }
            let last = QuickWork { _ in order.record("last") }
            for operation in middle {
                operation.addDependency(first)
                last.addDependency(operation)
            }
            for operation in [last] + middle + [first] {
                operation.completionBlock = { ended.arrive() }
                queue.addOperation(operation)
            }
            return ended.haveAllCome() && queue.operationCount == 0
        }
        #expect(isDone)
        #expect(order.events == ["first"] + Array(repeating: "middle", count: 500) + ["last"])
    }
}
