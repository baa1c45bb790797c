// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("Model of shared operations", .timeLimit(.minutes(Rounds.minutes)))
struct SharingModelTests {
    @Test func `askers and runs agree with a simple model after any starts, cancellations and ends`() async throws {
        // The test uses its own thread, because it waits for other threads and must not occupy a shared one.
        let failure = try await TestThread.run { try Self.firstFailure() }
        if let failure { Issue.record("\(failure)") }
    }

    private static func firstFailure() throws -> String? {
        let schedules = Rounds.count(ci: 2_000, soak: 100_000)
        NoticeHub.install()
        let firstSeed = ProcessInfo.processInfo.environment["OPERATIONKIT_SEED"].flatMap(UInt64.init)
        for seed in firstSeed.map({ $0...$0 }) ?? Rounds.firstSeed...Rounds.firstSeed + UInt64(schedules) {
            var schedule = SharingSchedule(seed: seed)
            if let failure = schedule.run() {
                return "seed \(seed) (repeat with OPERATIONKIT_SEED=\(seed)): \(failure)"
            }
        }
        if Rounds.isSoak { print("soak: sharing: \(schedules) schedules from seed \(Rounds.firstSeed)") }
        return nil
    }
}

/// One schedule on one thread, together with the expected state.
private struct SharingSchedule {
    private struct Line {
        /// The run for which the participants wait.
        var run: Int?
        var participants: [Int] = []
        /// The canceled runs that have not ended.
        var winding: Set<Int> = []
        var kept: (value: Int, until: Int)?
    }

    private var random: SeededGenerator
    private let clock = ManualClock()
    private let flights: SharedOperations<Int, Int, Flaw>
    private let runs: Runs
    private let timeToLive: Int
    private let windsDown: Bool
    private var seconds = 0
    private var participants: [(operation: AsyncOperation<Int, Flaw>, key: Int)] = []
    private var expected: [String?] = []
    private var expectedRuns: [String?] = []
    private var lines = [Line](repeating: Line(), count: 2)
    /// The canceled participants that end when their run has wound down.
    private var lasting: [Int: (run: Int, key: Int)] = [:]
    private var history: [String] = []

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        timeToLive = random.chance(1, in: 2) ? 3 : 0
        windsDown = random.chance(1, in: 2)
        runs = Runs(windsDown: windsDown)
        flights = SharedOperations(timeToLive: .seconds(timeToLive), clock: clock)
    }

    mutating func run() -> String? {
        for _ in 0..<30 {
            step()
            if let failure = failure { return "\(failure) after \(history.joined(separator: ", "))" }
        }
        for index in participants.indices { participants[index].operation.cancel() }
        for run in runs.all { runs.conclude(run, with: .success(0)) }
        flights.forgetAll()
        if clock.pendingCount != 0 { return "a timer was left" }
        if runs.active.peak > 2 { return "more than one run of a key at once" }
        return nil
    }

    private mutating func step() {
        let key = Int.random(in: 0..<2, using: &random)
        switch Int.random(in: 0..<12, using: &random) {
        case 0..<5: ask(key)
        case 5..<8: if let index = participants.indices.randomElement(using: &random) { cancel(index) }
        case 8: end(key, failing: random.chance(1, in: 3))
        case 9: windDown(key)
        case 10: cancelRun(key)
        default: advance()
        }
    }

    private mutating func ask(_ key: Int) {
        history.append("ask \(key)")
        let index = participants.count
        let runs = runs
        let participant = flights.operation(for: key) { runs.make() }
        participants.append((participant, key))
        expected.append(nil)
        participant.start()
        if let kept = lines[key].kept, kept.until > seconds { return expected[index] = "success \(kept.value)" }
        lines[key].kept = nil
        if lines[key].run == nil {
            lines[key].run = expectedRuns.count
            expectedRuns.append(nil)
        }
        lines[key].participants.append(index)
    }

    private mutating func cancel(_ index: Int) {
        history.append("cancel \(index)")
        participants[index].operation.cancel()
        guard expected[index] == nil else { return }
        expected[index] = "cancelled requested"
        let key = participants[index].key
        lines[key].participants.removeAll { $0 == index }
        guard lines[key].participants.isEmpty, let run = lines[key].run else { return }
        expectedRuns[run] = "cancelled allAskersLeft"
        leave(run, key, with: [index])
    }

    /// Notes that a run was canceled.
    ///
    /// The run winds down if its body has begun, which is so unless an earlier run still winds down.
    private mutating func leave(_ run: Int, _ key: Int, with last: [Int]) {
        lines[key].run = nil
        guard windsDown, lines[key].winding.isEmpty else { return }
        lines[key].winding.insert(run)
        for participant in last { lasting[participant] = (run, key) }
    }

    private mutating func end(_ key: Int, failing: Bool) {
        guard let run = lines[key].run, lines[key].winding.isEmpty else { return }
        history.append("end \(run)")
        let word = failing ? "failure first" : "success \(run)"
        runs.conclude(runs.all[run], with: failing ? .failure(.first) : .success(run))
        expectedRuns[run] = word
        for participant in lines[key].participants { expected[participant] = word }
        lines[key].run = nil
        lines[key].participants = []
        if !failing, timeToLive > 0 { lines[key].kept = (run, seconds + timeToLive) }
    }

    private mutating func windDown(_ key: Int) {
        guard let run = lines[key].winding.popFirst() else { return }
        history.append("wind down \(run)")
        runs.conclude(runs.all[run], with: .success(-1))
        // The body of the waiting run begins on another thread.
        if let next = lines[key].run { begun(runs.all[next]) }
    }

    private mutating func cancelRun(_ key: Int) {
        guard let run = lines[key].run else { return }
        history.append("cancel run \(run)")
        runs.all[run].cancel(because: .requested("run"))
        expectedRuns[run] = "cancelled requested"
        let last = lines[key].participants
        lines[key].participants = []
        for participant in last { expected[participant] = "cancelled requested" }
        leave(run, key, with: last)
    }

    private mutating func advance() {
        history.append("advance")
        seconds += 1
        clock.advance(by: .seconds(1))
    }

    private func begun(_ run: HandDriven) {
        while run.calls.count == 0 { sched_yield() }
    }

    private var failure: String? {
        let words = participants.map { $0.operation.outcome?.word }
        if words != expected { return "askers: \(words), expected \(expected)" }
        for (index, participant) in participants.enumerated() {
            let windsDown = lasting[index].map { lines[$0.key].winding.contains($0.run) } ?? false
            let ended = expected[index].map { $0.hasPrefix("cancelled") ? Look.cancelled : .finished }
            let look = Look(participant.operation), wanted = windsDown ? .windingDown : ended ?? .executing
            if look != wanted { return "asker \(index): \(look), expected \(wanted)" }
        }
        let runWords = runs.all.map { $0.outcome?.word }
        if runWords != expectedRuns { return "runs: \(runWords), expected \(expectedRuns)" }
        return nil
    }
}
