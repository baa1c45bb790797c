// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct DownloadSteeringTests {
    private final class Task: IdleTask {
    }

    /// A thread that makes requests, and then performs their steps, each of which takes a while.
    private struct Settler {
        var wishes: [Bool]
        var step: DownloadSteering.Step?
        var isBusy = false
    }

    private struct Model {
        var steering = DownloadSteering()
        var wanted = true
        /// Whether each task runs, according to the calls.
        var runs: [ObjectIdentifier: Bool] = [:]
        var settlers: [Settler] = []
        /// The last one is the current task.
        var tasks: [Task] = []
    }

    @Test func `whichever threads suspend and resume it, a task follows the last call, one thread at a time`() {
        for seed in UInt64(0)..<2000 {
            var generator = SeededGenerator(seed: seed)
            var model = Model()
            let begins = model.steering.resume()
            #expect(begins)
            model.settlers = (0..<3).map { _ in
                Settler(wishes: (0..<4).map { _ in generator.chance(1, in: 2) })
            }
            // The last call resumes the task.
            model.settlers.append(Settler(wishes: [true]))
            while advance(&model, &generator) {
                #expect(model.settlers.filter(\.isBusy).count <= 1, "seed \(seed)")
            }
            guard let task = model.tasks.last else { return unmet("no task; seed \(seed)") }
            #expect(model.runs[ObjectIdentifier(task)] ?? false == model.wanted, "seed \(seed)")
        }
    }

    /// Lets one thread, or the download's queue, perform one action.
    ///
    /// Returns `false` if no action is left.
    private func advance(_ model: inout Model, _ generator: inout SeededGenerator) -> Bool {
        let able = model.settlers.indices.filter { model.settlers[$0].isBusy || !model.settlers[$0].wishes.isEmpty }
        let changesTask = model.tasks.isEmpty || generator.chance(1, in: 20)
        guard !able.isEmpty || model.tasks.isEmpty else { return false }
        guard !changesTask, let index = able.randomElement(using: &generator) else {
            change(&model)
            return true
        }
        var settler = model.settlers[index]
        if settler.isBusy {
            switch settler.step {
            case .resume(let task)?: model.runs[ObjectIdentifier(task)] = true
            case .suspend(let task)?: model.runs[ObjectIdentifier(task)] = false
            case nil: break
            }
            settler.step = model.steering.nextStep()
        } else {
            let runs = settler.wishes.removeFirst()
            model.wanted = runs
            if !runs {
                model.steering.suspend()
            } else {
                let begins = model.steering.resume()
                #expect(!begins)
            }
            settler.step = model.steering.firstStep()
        }
        settler.isBusy = settler.step != nil
        model.settlers[index] = settler
        return true
    }

    /// Another request replaces the last one, and its thread performs the first step.
    private func change(_ model: inout Model) {
        if !model.tasks.isEmpty {
            let (isWanted, last) = model.steering.askAgain()
            #expect(isWanted && last === model.tasks.last)
        }
        let task = Task()
        model.tasks.append(task)
        let isTaken = model.steering.take(task)
        #expect(isTaken)
        let step = model.steering.firstStep()
        model.settlers.append(Settler(wishes: [], step: step, isBusy: step != nil))
    }

    @Test func `after a cancellation, there are no more steps and no task is accepted`() {
        var steering = DownloadSteering()
        let task = Task()
        let begins = steering.resume()
        let isTaken = steering.take(task)
        #expect(begins && isTaken)
        guard case .task(let cancelled) = steering.cancel() else { return #expect(Bool(false)) }
        #expect(cancelled === task)
        guard case nil = steering.firstStep() else { return #expect(Bool(false)) }
        let (isWanted, _) = steering.askAgain()
        let isAnotherTaken = steering.take(Task())
        let (isCancelled, _) = steering.end()
        #expect(!isWanted && !isAnotherTaken && isCancelled)
        guard case .noTask = steering.cancel() else { return #expect(Bool(false)) }
    }

    @Test func `a download that is canceled before its start has ended, and does not start`() {
        var steering = DownloadSteering()
        guard case .ended = steering.cancel() else { return #expect(Bool(false)) }
        let begins = steering.resume()
        #expect(!begins)
        guard case nil = steering.firstStep() else { return #expect(Bool(false)) }
        guard case .noTask = steering.cancel() else { return #expect(Bool(false)) }
    }
}
