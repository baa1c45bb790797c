// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct DownloadSteeringTests {
    private final class Task: IdleTask, OrderedTask {
        private let last = Locked(PauseOrder(number: .min, isSuspended: true))

        var runs: Bool { last.withLock { !$0.isSuspended } }

        func follow(_ order: PauseOrder) {
            last.withLock { if order.number > $0.number { $0 = order } }
        }
    }

    /// A thread that makes requests, and passes an order after each one, which takes a while.
    private struct Caller {
        var wishes: [Bool]
        var order: (target: PauseOrderTarget, order: PauseOrder)?
    }

    private struct Model {
        var steering = DownloadSteering()
        var wanted = true
        var callers: [Caller] = []
        /// The last one is the current task.
        var tasks: [Task] = []
    }

    @Test func `whichever threads suspend and resume it, a task follows the last call`() {
        for seed in UInt64(0)..<2000 {
            var generator = SeededGenerator(seed: seed)
            var model = Model()
            let begins = model.steering.resume()
            #expect(begins)
            model.callers = (0..<4).map { _ in
                Caller(wishes: (0..<4).map { _ in generator.chance(1, in: 2) })
            }
            while advance(&model, &generator) {}
            guard let task = model.tasks.last else { return unmet("no task; seed \(seed)") }
            #expect(task.runs == model.wanted, "seed \(seed)")
        }
    }

    /// Lets one thread, or the download's queue, perform one action.
    ///
    /// Returns `false` if no action is left.
    private func advance(_ model: inout Model, _ generator: inout SeededGenerator) -> Bool {
        let able = model.callers.indices.filter {
            model.callers[$0].order != nil || !model.callers[$0].wishes.isEmpty
        }
        let changesTask = model.tasks.isEmpty || generator.chance(1, in: 20)
        guard !able.isEmpty || model.tasks.isEmpty else { return false }
        guard !changesTask, let index = able.randomElement(using: &generator) else {
            change(&model)
            return true
        }
        if let (target, order) = exchange(&model.callers[index].order, with: nil) {
            target.pass(order)
        } else {
            let runs = model.callers[index].wishes.removeFirst()
            model.wanted = runs
            if !runs {
                model.steering.suspend()
            } else {
                let begins = model.steering.resume()
                #expect(!begins)
            }
            model.callers[index].order = model.steering.wanted
        }
        return true
    }

    /// Another request replaces the last one, and its thread passes the first order.
    private func change(_ model: inout Model) {
        if !model.tasks.isEmpty {
            let (isWanted, last) = model.steering.askAgain()
            #expect(isWanted && last?.task === model.tasks.last)
        }
        let task = Task()
        model.tasks.append(task)
        let isTaken = model.steering.take(PauseOrderTarget(task))
        #expect(isTaken)
        model.callers.append(Caller(wishes: [], order: model.steering.wanted))
    }

    @Test func `after a cancellation, there are no more orders and no task is accepted`() {
        var steering = DownloadSteering()
        let task = Task()
        let begins = steering.resume()
        let isTaken = steering.take(PauseOrderTarget(task))
        #expect(begins && isTaken)
        guard case .task(let cancelled) = steering.cancel() else { return #expect(Bool(false)) }
        #expect(cancelled === task)
        #expect(steering.wanted == nil)
        let (isWanted, _) = steering.askAgain()
        let isAnotherTaken = steering.take(PauseOrderTarget(Task()))
        let (isCancelled, _) = steering.end()
        #expect(!isWanted && !isAnotherTaken && isCancelled)
        guard case .noTask = steering.cancel() else { return #expect(Bool(false)) }
    }

    @Test func `a download that is canceled before its start has ended, and does not start`() {
        var steering = DownloadSteering()
        guard case .ended = steering.cancel() else { return #expect(Bool(false)) }
        let begins = steering.resume()
        #expect(!begins && steering.wanted == nil)
        guard case .noTask = steering.cancel() else { return #expect(Bool(false)) }
    }
}
