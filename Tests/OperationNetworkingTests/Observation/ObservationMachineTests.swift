// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite("What observers are told, as a pure value", .timeLimit(.minutes(1)))
struct ObservationMachineTests {
    private let request: NetworkRequest
    private let head: ResponseHead

    init() throws {
        let url = try #require(URL(string: "http://example.com/"))
        request = try NetworkRequest(url: url)
        head = ResponseHead(url: url, status: 200)
    }

    /// Any step, at any time: threads may bring them in an order in which they never happened.
    private func step(_ generator: inout SeededGenerator) -> AttemptStep {
        switch Int.random(in: 0..<16, using: &generator) {
        case 0: .started
        case 1, 2: .begins
        case 3: .held(WaitReason(.network, "waiting for the network"), request)
        case 4: .sends(request)
        case 5: .hopBegins(request)
        case 6: .left(head)
        case 7: .measured(TransferMetrics())
        case 8: .bodySent
        case 15: .hopIsOver
        case 9: .takenBack
        case 10: .received(head)
        case 11: .evaluated(body: nil, count: 1)
        case 12: .failed(NetworkError(code: .timedOut, phase: .receiving, message: "Late."), count: 0)
        case 13: .decided(AttemptAnswer(.again(after: .zero)))
        default: .suspended(generator.chance(1, in: 2))
        }
    }

    private func note(
        _ machine: inout ObservationMachine, _ step: AttemptStep, _ number: Int, _ moment: Int
    ) -> [NetworkEvent] {
        machine.note(step, number, at: OperationInstant(offset: .seconds(moment))) { kind, attempt, hop, moment in
            NetworkEvent(kind, attempt: attempt, hop: hop, moment: moment)
        }
    }

    @Test("Whatever the order in which threads bring the steps, each beginning has one end, and the last is last")
    func anyOrder() {
        for seed in Rounds.firstSeed..<Rounds.firstSeed + UInt64(Rounds.count(ci: 2_000, soak: 200_000)) {
            var generator = SeededGenerator(seed: seed)
            var machine = ObservationMachine()
            var events: [NetworkEvent] = []
            var number = 1
            for moment in 0..<60 {
                // An attempt is followed by the next one only when it is over; its steps may come late.
                var present = number
                if number > 1, generator.chance(1, in: 5) { present -= 1 }
                let step = moment == 0 ? AttemptStep.started : step(&generator)
                // It read the clock before it came.
                let told = note(&machine, step, present, moment - Int.random(in: 0...3, using: &generator))
                events += told
                if told.contains(where: { $0.kind == .attemptEnded }) { number += 1 }
            }
            events += note(&machine, .ended(.cancelled, nil, .requested), 0, 60)
            events += note(&machine, .ended(.success, nil, nil), 0, 61)
            events += note(&machine, .begins, number, 62)
            let problem = EventLog.problem(in: events)
            #expect(problem == nil, "seed \(seed): \(problem ?? ""), \(events.map(\.kind))")
        }
    }

    @Test("What has begun ends before what is around it, and the reason of the cancellation is told with each")
    func cancellation() {
        var machine = ObservationMachine()
        let steps: [AttemptStep] = [.started, .begins, .sends(request), .hopBegins(request)]
        var events: [NetworkEvent] = []
        for (moment, step) in steps.enumerated() { events += note(&machine, step, 1, moment) }
        events += note(&machine, .ended(.cancelled, nil, .requested), 0, 10)
        #expect(
            events.map(\.kind) == [
                .operationBegan, .attemptBegan, .sending, .hopBegan, .hopEnded, .attemptEnded, .operationEnded,
            ])
        #expect(events.suffix(2).allSatisfy { $0.ending == .cancelled && $0.cancellationCause == .requested })
        #expect(events.last?.sinceOperationBegan == .seconds(10))
        #expect(events[5].sinceAttemptBegan == .seconds(9) && events[5].sinceSending == .seconds(8))
    }
}
