// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Model of operations and their dependencies", .timeLimit(.minutes(Rounds.minutes)))
struct OperationModelTests {
    @Test("With commands from several threads, operations behave like the model for some order of the commands")
    func modelAgrees() async throws {
        let schedules = Rounds.count(ci: 6_000, soak: 100_000)
        let firstSeed = ProcessInfo.processInfo.environment["OPERATIONKIT_SEED"].flatMap(UInt64.init)
        let failure = try await TestThread.run { () -> String? in
            NoticeHub.install()
            let team = ThreadTeam(count: 3)
            if let firstSeed { return runSchedule(seed: firstSeed, team: team) }
            for seed in Rounds.firstSeed..<Rounds.firstSeed + UInt64(schedules) {
                if let failure = runSchedule(seed: seed, team: team) { return failure }
            }
            return nil
        }
        #expect(failure == nil, "\(failure ?? "")")
        if Rounds.isSoak { print("soak: model: \(schedules) schedules from seed \(Rounds.firstSeed)") }
    }
}

/// Runs one schedule, and returns a description of the first failure.
@available(*, noasync)
private func runSchedule(seed: UInt64, team: ThreadTeam) -> String? {
    var random = SeededGenerator(seed: seed)
    let kinds = (0..<Int.random(in: 1...5, using: &random)).map { _ in ModelKind.allCases.randomElement(using: &random)
    }
    .compactMap { $0 }
    let census = LiveObjects()
    var history: [[ModelCommand]] = []
    func report(_ what: String) -> String {
        "seed \(seed) (repeat with OPERATIONKIT_SEED=\(seed)): \(what)\nkinds: \(kinds)\n"
            + history.map { "  \($0.map(\.description).joined(separator: " | "))" }.joined(separator: "\n")
    }
    do {
        // Several models may agree with the visible state and differ in state that is not visible yet.
        var models: Set = [OperationModel(kinds: kinds)]
        let real = ModelledOperations(kinds: kinds, census: census)
        for _ in 0..<Int.random(in: 4...14, using: &random) {
            let batch = (0..<Int.random(in: 1...3, using: &random)).map { _ in
                randomCommand(operations: kinds.count, using: &random)
            }
            history.append(batch)
            if batch.count == 1 {
                real.apply(batch[0])
            } else {
                team.run(batch.map { command in { real.apply(command) } })
            }
            real.settle()
            let views = real.views
            models = Set(models.flatMap { successors(of: $0, after: batch) }.filter { $0.views == views })
            if models.isEmpty { return report("the model does not allow \(views)") }
        }
        if let wrong = models.map({ wrongOrder(in: real, model: $0) }).min(by: { a, _ in a == nil }), let wrong {
            return report(wrong)
        }
    }
    return census.countAtRest() == 0 ? nil : report("alive at the end: \(census.types)")
}

/// Returns all models that are possible after concurrent commands, when nothing more happens.
private func successors(of model: OperationModel, after batch: [ModelCommand]) -> Set<OperationModel> {
    struct Moment: Hashable {
        var model: OperationModel
        var waiting: [ModelCommand]
    }
    var seen: Set<Moment> = []
    var open = [Moment(model: model, waiting: batch)]
    var settled: Set<OperationModel> = []
    while let moment = open.popLast() {
        guard seen.insert(moment).inserted else { continue }
        for index in moment.waiting.indices {
            var next = moment
            next.model.apply(next.waiting.remove(at: index))
            open.append(next)
        }
        let steps = moment.model.steps
        for index in steps {
            var next = moment
            next.model.step(index)
            open.append(next)
        }
        if moment.waiting.isEmpty, steps.isEmpty { settled.insert(moment.model) }
    }
    return settled
}

private func randomCommand(operations: Int, using random: inout SeededGenerator) -> ModelCommand {
    let index = Int.random(in: 0..<operations, using: &random)
    let other = Int.random(in: 0..<operations, using: &random)
    switch Int.random(in: 0..<17, using: &random) {
    case 0..<4: return .start(index)
    case 4..<6: return .finish(index, Int.random(in: 0..<100, using: &random))
    case 6: return .fail(index)
    case 7..<9: return .cancel(index)
    case 9..<12: return .depend(index, on: other)
    case 12: return .release(index, from: other)
    case 13..<15: return .setHandlers(index)
    case 15: return .observe(index)
    default: return .drop(index)
    }
}

/// Checks that handlers on one serial queue run in the order of the graph, and returns a description of the fault.
///
/// This applies only if both bodies ran, both handlers were set in time, and no late cancellation silenced them.
private func wrongOrder(in real: ModelledOperations, model: OperationModel) -> String? {
    let events = real.log.events
    for (index, one) in model.all.enumerated() where one.isInOrder {
        for other in one.dependencies where model.all[other].isInOrder {
            guard let own = events.firstIndex(where: { $0.index == index }),
                let first = events.firstIndex(where: { $0.index == other })
            else { continue }
            if own < first { return "the handler of \(index) came before that of \(other)" }
        }
    }
    return nil
}
