// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Scenarios: finishing", .timeLimit(.minutes(Rounds.minutes)))
struct FinishingScenarioTests {
    @Test(
        "Scenario 4 (ProcedureKit#175): no operation whose dependency ends on another thread is lost",
        arguments: [1, 3, 8])
    func conditions(threads: Int) async throws {
        let batches = Rounds.count(ci: 12, soak: 3_400)
        try await expectNoFailures { failures in
            let team = ThreadTeam(count: threads + 1)
            let (queue, callbacks) = (OperationQueue(), DispatchQueue(label: "scenario 4"))
            for _ in 0..<batches {
                let (ended, handled) = (Arrivals(96), Arrivals(96))
                let conditions = (0..<96).map { _ in QuickWork() }
                let operations = conditions.map { condition in
                    let operation = QuickWork()
                    operation.addDependency(condition)
                    operation.callbackQueue = callbacks
                    operation.successHandler = { _ in handled.arrive() }
                    operation.completionBlock = { ended.arrive() }
                    return operation
                }
                let add: @Sendable () -> Void = { for operation in operations { queue.addOperation(operation) } }
                let start: [@Sendable () -> Void] = (0..<threads).map { thread in
                    { for number in stride(from: thread, to: 96, by: threads) { conditions[number].start() } }
                }
                team.run([add] + start)
                guard ended.haveAllCome(), handled.haveAllCome() else { return failures += 1 }
                callbacks.sync {}
                if ended.missingCount != 0 || handled.missingCount != 0 { failures += 1 }
            }
            queue.waitUntilAllOperationsAreFinished()
            failures += queue.operationCount
        }
        if Rounds.isSoak { print("soak: scenario 4: \(batches * 96) operations, \(threads) threads") }
    }

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

    @Test("Scenario 17 (ProcedureKit PR#474): eight threads that finish with different outcomes agree on one")
    func oneOutcome() async throws {
        NoticeHub.install()
        try await expectNoFailures { failures in
            let (team, callbacks) = (ThreadTeam(count: 8), DispatchQueue(label: "scenario 17"))
            for _ in 0..<Rounds.count(ci: 1_000, soak: 100_000) {
                let told = EventRecorder<OperationOutcome<Int, WorkError>>()
                let operation = HeldWork()
                operation.callbackQueue = callbacks
                operation.successHandler = { told.record(.success($0)) }
                operation.failureHandler = { told.record(.failure($0)) }
                for _ in 0..<3 { operation.observe { told.record($0) } }
                operation.start()
                team.run(
                    (0..<8).map { number in
                        {
                            number.isMultiple(of: 2)
                                ? operation.finish(withResult: number) : operation.finish(withError: .number(number))
                        }
                    })
                operation.waitUntilFinished()
                callbacks.sync {}
                guard let outcome = operation.outcome else { return failures += 1 }
                if told.events != Array(repeating: outcome, count: 4) { failures += 1 }
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
