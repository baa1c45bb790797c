// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

private final class Pair: SyncOperation<[Int], Flaw>, @unchecked Sendable {
    let calls = EventRecorder<String>()
    var numbers = [-1, -1]

    override func main() {
        calls.record("main")
        finish(withResult: numbers)
    }

    override func didCancel(because cause: CancellationCause) { calls.record("cancel") }
}

@Suite("Inputs with removed dependencies, and inputs that are added during the start", .timeLimit(.minutes(3)))
struct InputRemovalTests {
    /// The way in which an operation requests two inputs together.
    enum Form: CaseIterable, Sendable {
        case together, asArray

        fileprivate func ask(_ pair: Pair, _ left: HandDriven, _ right: HandDriven) throws {
            switch self {
            case .together: try pair.receive(from: left, right) { $0.numbers = [$1, $2] }
            case .asArray: try pair.receive(fromAll: [left, right]) { $0.numbers = $1 }
            }
        }
    }

    @Test(arguments: Form.allCases, [true, false])
    func `an operation that lost one of several inputs is canceled with the code inputMissing`(
        form: Form, endsFirst: Bool
    ) throws {
        let left = HandDriven(), right = HandDriven(), pair = Pair()
        try form.ask(pair, left, right)
        if endsFirst { UpstreamEnd.succeeds.perform(on: left) }
        pair.removeDependency(left)
        UpstreamEnd.succeeds.perform(on: right)
        pair.start()
        #expect(pair.isFinished)
        #expect(pair.cancellationCause?.code == .inputMissing)
        #expect(!pair.calls.events.contains("main"))
    }

    @Test(arguments: Form.allCases)
    func `an operation that lost all of its inputs runs without them`(form: Form) throws {
        let left = HandDriven(), right = HandDriven(), pair = Pair()
        try form.ask(pair, left, right)
        UpstreamEnd.succeeds.perform(on: right)
        for source in [left, right] { pair.removeDependency(source) }
        pair.start()
        #expect(pair.outcome == .success([-1, -1]))
    }

    @Test func `separately requested inputs are delivered when other dependencies are removed`() throws {
        let sources = (0..<4).map { HandDriven("\($0)") }, pair = Pair()
        let log = EventRecorder<Int>()
        for (number, source) in sources.enumerated() {
            try pair.receive(from: source, otherwise: .cancel) { _, _ in log.record(number) }
        }
        pair.removeDependency(sources[1])
        for source in sources { UpstreamEnd.succeeds.perform(on: source) }
        pair.removeDependency(sources[2])
        pair.start()
        #expect(log.events == [0, 3])
        #expect(pair.outcome == .success([-1, -1]))
    }

    @Test(arguments: [true, false])
    func `removing a dependency releases the closure that would use its input`(endsFirst: Bool) throws {
        let census = LiveObjects(), source = HandDriven(), pair = Pair()
        do {
            let object = census.track(Witness())
            try pair.receive(from: source, otherwise: .cancel) { _, _ in withExtendedLifetime(object) {} }
        }
        if endsFirst { UpstreamEnd.succeeds.perform(on: source) }
        #expect(census.count == 1)
        pair.removeDependency(source)
        #expect(census.count == 0)
    }

    @Test func `a cycle among several inputs adds none of the dependencies`() throws {
        let left = HandDriven(), pair = Pair(), after = TaskOperation<Int, Flaw> { () throws(Flaw) in 1 }
        try after.depend(on: pair, otherwise: .runAnyway)
        #expect(throws: OperationSetupError.self) {
            try pair.receive(from: left, after) { $0.numbers = [$1, $2] }
        }
        #expect(pair.dependencies == [])
        pair.start()
        #expect(pair.outcome == .success([-1, -1]))
    }

    @Test func `an input is delivered even if the operation starts while the input is added`() async throws {
        let source = NameCaller(), pair = Pair()
        source.start()
        // The rule reads the name of the source after the edge was added.
        source.onName.withLock { $0 = { pair.start() } }
        try pair.receive(from: source, otherwise: .use(7)) { $0.numbers = [$1] }
        #expect(await pair.finalOutcome == .success([7]))
    }

    @Test func `a started operation refuses inputs, even an empty list`() {
        let operation = HandDriven.started()
        #expect(throws: OperationSetupError.self) {
            try operation.receive(fromAll: [] as [HandDriven]) { _, _ in }
        }
    }

    @Test func `an input that is added during a concurrent start is either delivered or refused`() async throws {
        try await TestThread.run {
            let team = ThreadTeam(count: 2)
            for round in 0..<Rounds.count(ci: 2_000, soak: 100_000) {
                let source = ClosureOperation { round }, pair = Pair()
                let isRefused = Locked(false)
                source.start()
                let receive: @Sendable () -> Void = {
                    do {
                        try pair.receive(from: source, otherwise: .cancel) { $0.numbers = [$1] }
                    } catch {
                        isRefused.withLock { $0 = true }
                    }
                }
                team.run([{ pair.start() }, receive])
                let ended = Gate()
                pair.whenEnded { ended.open() }
                ended.wait()
                #expect(pair.outcome == .success(isRefused.withLock { $0 } ? [-1, -1] : [round]))
            }
        }
    }
}
