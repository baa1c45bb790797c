// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

private let smallStack = 512 << 10

// Each test runs on a small stack, which recursion along the chain would overflow. The benchmarks measure the time.
@Suite("Scenario 26: scale", .serialized, .timeLimit(.minutes(Rounds.minutes)))
struct ScaleScenarioTests {
    private let length = Rounds.count(ci: 30_000, soak: 1_000_000)

    @Test
    func `scenario 26 (HPX#1613): a long chain is built, started manually, canceled halfway and freed`() async throws {
        let length = Rounds.count(ci: 100_000, soak: 1_000_000)
        let freed = Arrivals(length)
        let counts = try await TestThread.run(stackSize: smallStack) {
            let clock = ContinuousClock.now
            let bodies = Tally()
            let successes = autoreleasing {
                let chain = makeChain(length) { _ in QuickWork(trace: Trace(freed)) { _ in bodies.add() } }
                for (number, operation) in chain.enumerated() {
                    if number == length / 2 { for rest in chain[number...] { rest.cancel() } }
                    operation.start()
                }
                return chain.count { $0.outcome == .success(1) }
            }
            if Rounds.isSoak { print("soak: chain of \(length), started manually: \(ContinuousClock.now - clock)") }
            return [successes, bodies.value]
        }
        #expect(counts == [length / 2, length / 2])
        #expect(try await TestThread.run { freed.haveAllCome() })
        #expect(freed.missingCount == 0)
    }

    @Test func `scenario 26: a long chain that is started in reverse order runs to its end`() async throws {
        let length = length
        let freed = Arrivals(length)
        let isDone = try await TestThread.run(stackSize: smallStack) {
            autoreleasing {
                let chain = makeChain(length) { _ in QuickWork(trace: Trace(freed)) }
                let last = chain[length - 1]
                for operation in chain.reversed() { operation.start() }
                last.waitUntilFinished()
                return chain.allSatisfy { $0.outcome == .success(1) }
            }
        }
        #expect(isDone)
        #expect(try await TestThread.run { freed.haveAllCome() })
    }

    @Test("Scenario 26: results of a long chain set before the start are reported when its first operation ends")
    func keptResults() async throws {
        let length = length
        let freed = Arrivals(length)
        let told = Tally()
        let isDone = try await TestThread.run(stackSize: smallStack) {
            autoreleasing {
                let callbacks = DispatchQueue(label: "scenario 26")
                let chain = makeChain(length) { _ in HeldWork(trace: Trace(freed)) }
                for (number, operation) in chain.enumerated() {
                    operation.callbackQueue = callbacks
                    // Handlers are called in the order of the chain.
                    operation.successHandler = { if $0 == number { told.add() } }
                    if number > 0 { operation.finish(withResult: number) }
                    operation.start()
                }
                guard chain[1].outcome == .success(1), !chain[1].isFinished else { return false }
                chain[0].finish(withResult: 0)
                callbacks.sync {}
                return chain.allSatisfy(\.isFinished)
            }
        }
        #expect(isDone)
        #expect(told.value == length)
        #expect(try await TestThread.run { freed.haveAllCome() })
    }

    @Test func `scenario 26: one operation before and one after many operations run in order`() async throws {
        let length = length
        let isDone = try await TestThread.run(stackSize: smallStack) {
            let (first, last) = (HeldWork(), QuickWork())
            let middle = (0..<length).map { _ in HeldWork() }
            for operation in middle {
                operation.addDependency(first)
                last.addDependency(operation)
                operation.startAndFinish(withResult: 1)
            }
            last.start()
            first.start()
            guard !last.isReady else { return false }
            first.finish(withResult: 1)
            last.waitUntilFinished()
            return last.outcome == .success(1) && middle.allSatisfy(\.isFinished)
        }
        #expect(isDone)
    }

    #if os(macOS) || os(Linux)
        // Runs in a separate process, because an error would overflow the stack.
        @Test
        func `scenario 26: a cancellation propagates along a long chain, and its causes are freed`() async throws {
            await #expect(processExitsWith: .success) {
                let length = Rounds.count(ci: 20_000, soak: 1_000_000)
                let isDone = try await TestThread.run(stackSize: smallStack) {
                    autoreleasing {
                        let chain = (0..<length).map { _ in HeldWork() }
                        for (operation, next) in zip(chain, chain.dropFirst()) {
                            try? next.depend(on: operation, otherwise: .cancel)
                        }
                        for operation in chain { operation.start() }
                        chain[0].cancel(because: .requested("the head"))
                        return chain.allSatisfy { $0.isFinished && $0.isCancelled }
                    }
                }
                #expect(isDone)
            }
        }

        @Test("Scenario 26: the cause of a cancellation that propagated along a long chain can be printed")
        func longCausePrinted() async throws {
            await #expect(processExitsWith: .success) {
                try await TestThread.run(stackSize: smallStack) {
                    let chain = (0..<2_000).map { _ in HeldWork() }
                    for (operation, next) in zip(chain, chain.dropFirst()) {
                        try next.depend(on: operation, otherwise: .cancel)
                    }
                    for operation in chain { operation.start() }
                    chain[0].cancel(because: .requested("the head"))
                    #expect(chain.last?.cancellationCause.map { "\($0)".count < 1_000_000 } == true)
                }
            }
        }
    #endif
}

/// Creates operations that each depend on the previous one.
private func makeChain<Work: ManagedOperation>(_ length: Int, _ make: (Int) -> Work) -> [Work] {
    let chain = (0..<length).map(make)
    for (operation, next) in zip(chain, chain.dropFirst()) { next.addDependency(operation) }
    return chain
}
