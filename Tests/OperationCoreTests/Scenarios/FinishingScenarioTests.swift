// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Scenarios: finishing", .timeLimit(.minutes(Rounds.minutes)))
struct FinishingScenarioTests {
    /// The place in the code from which an operation is finished.
    enum Place: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case insideMain = "inside main", beforeStart = "before the start"
        case anotherThread = "by another thread during main", twice = "by main and another thread"
        var testDescription: String { rawValue }

        @available(*, noasync)
        fileprivate func body(_ work: Work) {
            guard self == .anotherThread || self == .twice else {
                if self == .insideMain { work.finish(withResult: 1) }
                return
            }
            let finished = Arrivals(1)
            Thread {
                work.finish(withError: .broken)
                finished.arrive()
            }.start()
            if self == .twice { work.finish(withResult: 1) }
            _ = finished.haveAllCome()
        }
    }

    @Test(
        "Scenario 5 (PSOperations#4): handler and completion block are called once for each way of finishing",
        arguments: Place.allCases, [false, true])
    func calledOnce(place: Place, inQueue: Bool) async throws {
        NoticeHub.install()
        try await expectNoFailures { failures in
            let (queue, callbacks) = (OperationQueue(), DispatchQueue(label: "scenario 5"))
            for _ in 0..<Rounds.count(ci: 100, soak: 10_000) {
                let works: [Work] = [HeldWork { place.body($0) }, QuickWork { place.body($0) }]
                for work in works {
                    let (completions, handled) = (Arrivals(1), Arrivals(1))
                    work.callbackQueue = callbacks
                    work.successHandler = { _ in handled.arrive() }
                    work.failureHandler = { _ in handled.arrive() }
                    work.completionBlock = { completions.arrive() }
                    if place == .beforeStart { work.finish(withResult: 1) }
                    inQueue ? queue.addOperation(work) : work.start()
                    guard completions.haveAllCome(), handled.haveAllCome() else { return failures += 1 }
                    callbacks.sync {}
                    if completions.missingCount != 0 || handled.missingCount != 0 { failures += 1 }
                }
            }
        }
    }

    @Test("Scenario 17 (RestKit#2164): if main() and another thread finish at the same time, one outcome counts")
    func mainAgainstThread() async throws {
        NoticeHub.install()
        try await expectNoFailures { failures in
            let team = ThreadTeam(count: 2)
            for _ in 0..<Rounds.count(ci: 1_000, soak: 100_000) {
                let ended = Arrivals(2)
                let operations: [Work] = [
                    HeldWork { $0.finish(withResult: 1) }, QuickWork { $0.finish(withResult: 1) },
                ]
                for operation in operations {
                    operation.completionBlock = { ended.arrive() }
                    team.run([{ operation.start() }, { operation.finish(withError: .broken) }])
                }
                guard ended.haveAllCome() else { return failures += 1 }
                failures += operations.count { $0.outcome != .success(1) && $0.outcome != .failure(.broken) }
            }
        }
    }
}

private typealias Work = TypedOperation<Int, WorkError>
