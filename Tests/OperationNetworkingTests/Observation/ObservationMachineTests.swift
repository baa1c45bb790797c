// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite("State machine of observations", .timeLimit(.minutes(1)))
struct ObservationMachineTests {
    private let request: NetworkRequest
    private let head: ResponseHead

    init() throws {
        let url = try #require(URL(string: "http://example.com/"))
        request = try NetworkRequest(url: url)
        head = ResponseHead(url: url, status: 200)
    }

    /// Returns a random step, because several threads may report steps in an order in which they did not happen.
    private func step(_ generator: inout SeededGenerator) -> AttemptStep {
        switch Int.random(in: 0..<16, using: &generator) {
        case 0: .started
        case 1, 2: .begins
        case 3: .held(WaitReason(.network, "waiting for the network"), request)
        case 4: .sends(request)
        case 5: .hop(.begins(request))
        case 6: .hop(.left(head))
        case 7: .hop(.measured(TransferMetrics()))
        case 8: .hop(.bodySent)
        case 15: .hop(.ended)
        case 9: .takenBack
        case 10: .hop(.received(head))
        case 11: .evaluated(body: nil, count: 1)
        case 12: .failed(NetworkError(code: .timedOut, phase: .receiving, message: "Late."), count: 0)
        case 13: .decided(AttemptPolicyDecision(.again(after: .zero)))
        default: .suspended(generator.chance(1, in: 2))
        }
    }

    private func record(
        _ machine: inout ObservationMachine, _ step: AttemptStep, _ number: Int, _ moment: Int
    ) -> [NetworkEvent] {
        machine.record(step, number, at: OperationInstant(offset: .seconds(moment))) { kind, attempt, hop, moment in
            NetworkEvent(kind, attempt: attempt, hop: hop, moment: moment)
        }
    }

    @Test func `in any order of steps, each beginning has one end, and the operation ends last`() {
        for seed in Rounds.firstSeed..<Rounds.firstSeed + UInt64(Rounds.count(ci: 2_000, soak: 200_000)) {
            var generator = SeededGenerator(seed: seed)
            var machine = ObservationMachine()
            var events: [NetworkEvent] = []
            var number = 1
            for moment in 0..<60 {
                // The next attempt begins only after this one has ended, but steps of this attempt may still be
                // reported.
                var present = number
                if number > 1, generator.chance(1, in: 5) { present -= 1 }
                let step = moment == 0 ? AttemptStep.started : step(&generator)
                // The thread read the clock before it reported the step.
                let told = record(&machine, step, present, moment - Int.random(in: 0...3, using: &generator))
                events += told
                if told.contains(where: { $0.kind == .attemptEnded }) { number += 1 }
            }
            events += record(&machine, .ended(nil, .requested), 0, 60)
            events += record(&machine, .ended(nil, nil), 0, 61)
            events += record(&machine, .begins, number, 62)
            let problem = EventLog.problem(in: events)
            #expect(problem == nil, "seed \(seed): \(problem ?? ""), \(events.map(\.kind))")
        }
    }

    @Test func `nested steps end from the inside out, each with the reason of the cancellation`() {
        var machine = ObservationMachine()
        let steps: [AttemptStep] = [.started, .begins, .sends(request), .hop(.begins(request))]
        var events: [NetworkEvent] = []
        for (moment, step) in steps.enumerated() { events += record(&machine, step, 1, moment) }
        events += record(&machine, .ended(nil, .requested), 0, 10)
        #expect(
            events.map(\.kind) == [
                .operationBegan, .attemptBegan, .sending, .hopBegan, .hopEnded, .attemptEnded, .operationEnded,
            ])
        #expect(events.suffix(2).allSatisfy { $0.ending == .cancelled && $0.cancellationCause == .requested })
        #expect(events.last?.sinceOperationBegan == .seconds(10))
        #expect(events[5].sinceAttemptBegan == .seconds(9) && events[5].sinceSending == .seconds(8))
    }
}
