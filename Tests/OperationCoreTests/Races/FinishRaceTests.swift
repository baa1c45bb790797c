// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

private struct RaceError: Error, Equatable { let number: Int }

private final class Raced: AsyncOperation<Int, RaceError>, @unchecked Sendable {
    override func main() {}
}

@Suite("Races for the outcome", .timeLimit(.minutes(Rounds.minutes)))
struct FinishRaceTests {
    @Test func `eight threads that finish, fail and cancel agree on one outcome with all handlers`() async throws {
        let rounds = Rounds.count(ci: 5_000, soak: 100_000)
        NoticeHub.install()
        let failure = try await TestThread.run { () -> String? in
            let team = ThreadTeam(count: 8)
            let queue = DispatchQueue(label: "race")
            for round in 0..<rounds {
                if let failure = race(round: round, team: team, queue: queue) { return failure }
            }
            return nil
        }
        #expect(failure == nil)
        if Rounds.isSoak { print("soak: finish race: \(rounds) rounds of 8 threads") }
    }
}

/// One round: two threads finish, two fail, two cancel in every second round, one sets handlers and one observes.
@available(*, noasync)
private func race(round: Int, team: ThreadTeam, queue: DispatchQueue) -> String? {
    let operation = Raced(), cancels = round.isMultiple(of: 2)
    operation.callbackQueue = queue
    let handled = EventRecorder<OperationOutcome<Int, RaceError>>()
    let observed = EventRecorder<OperationOutcome<Int, RaceError>>()
    let completions = EventRecorder<Bool>()
    let completed = DispatchSemaphore(value: 0)
    operation.completionBlock = { [weak operation] in
        completions.record(operation?.isFinished ?? true)
        completed.signal()
    }
    operation.observe { observed.record($0) }
    operation.start()
    team.run([
        { operation.finish(withResult: 1) },
        { operation.finish(withResult: 2) },
        { operation.finish(withError: RaceError(number: 3)) },
        { operation.finish(withError: RaceError(number: 4)) },
        { if cancels { operation.cancel() } },
        { if cancels { operation.cancel(because: .requested("six")) } },
        {
            operation.successHandler = { handled.record(.success($0)) }
            operation.failureHandler = { handled.record(.failure($0)) }
            operation.cancellationHandler = { handled.record(.cancelled($0)) }
        },
        { operation.observe { observed.record($0) } },
    ])
    operation.waitUntilFinished()
    completed.wait()
    queue.sync {}
    guard let outcome = operation.outcome else { return "round \(round): no outcome" }
    // A cancellation after a result or an error may precede the handler, which is then not called.
    let mayBeSilent = cancels && outcome.cancellationCause == nil && handled.events == []
    if handled.events != [outcome], !mayBeSilent {
        return "round \(round): \(outcome), but the handlers received \(handled.events)"
    }
    if observed.events != [outcome, outcome] { return "round \(round): \(outcome), observed \(observed.events)" }
    if completions.events != [true] { return "round \(round): completion block \(completions.events)" }
    return nil
}
