// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Scenarios: observing states", .timeLimit(.minutes(Rounds.minutes)))
struct StateScenarioTests {
    private static let life: [OperationState] = [.notStarted, .executing, .suspended, .executing, .finished]

    @Test(
        "swift#59363 (KVO .initial): the states sequence begins with the current state and then misses none",
        arguments: 0..<5)
    func presentFirst(position: Int) async {
        let operation = HeldWork()
        for step in 0..<position { take(step, operation) }
        let states = operation.states.makeAsyncIterator()
        for step in position..<4 { take(step, operation) }
        var seen: [OperationState] = []
        while let state = await states.next() { seen.append(state) }
        #expect(seen == Array(Self.life[position...]))
    }

    @Test
    func `swift#59363 (KVO .initial): an observer that starts during changes sees all remaining states`() async throws {
        let rounds = Rounds.count(ci: 1_000, soak: 100_000)
        var broken = 0
        for _ in 0..<rounds {
            let operation = HeldWork()
            let watcher = Task {
                var seen: [OperationState] = []
                for await state in operation.states { seen.append(state) }
                return seen
            }
            for step in 0..<4 {
                take(step, operation)
                if step == 1 { await Task.yield() }
            }
            let seen = await watcher.value
            if seen.isEmpty || seen != Array(Self.life.suffix(seen.count)) { broken += 1 }
        }
        #expect(broken == 0)
    }

    private func take(_ step: Int, _ operation: HeldWork) {
        switch step {
        case 0: operation.start()
        case 1: operation.suspend()
        case 2: operation.resume()
        default: operation.finish(withResult: 1)
        }
    }
}
