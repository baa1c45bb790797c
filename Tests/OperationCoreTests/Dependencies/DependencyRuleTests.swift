// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// The way in which an upstream operation ends.
enum UpstreamEnd: CaseIterable, Sendable {
    case succeeds, fails, isCancelled

    func perform(on operation: HandDriven) {
        operation.start()
        switch self {
        case .succeeds: operation.finish(withResult: 7)
        case .fails: operation.finish(withError: .first)
        case .isCancelled: operation.cancel(because: .requested("upstream"))
        }
    }
}

/// Checks each rule for each end of the dependency, before and after the edge is added.
@Suite(.timeLimit(.minutes(3)))
struct DependencyRuleTests {
    /// Creates an operation whose dependency ends, and returns it.
    private func downstream(
        _ end: UpstreamEnd, endsFirst: Bool, rule: DependencyRule<Flaw>
    ) throws -> HandDriven {
        let upstream = HandDriven("Source"), downstream = HandDriven("Sink")
        if endsFirst { end.perform(on: upstream) }
        try downstream.depend(on: upstream, otherwise: rule)
        if !endsFirst {
            #expect(Look(downstream) == .blocked)
            end.perform(on: upstream)
        }
        #expect(downstream.isReady)
        return downstream
    }

    @Test(arguments: UpstreamEnd.allCases, [true, false])
    func `the runAnyway rule runs an operation however its dependency ends`(end: UpstreamEnd, endsFirst: Bool) throws {
        let downstream = try downstream(end, endsFirst: endsFirst, rule: .runAnyway)
        #expect(Look(downstream) == .waiting)
        downstream.start()
        #expect(Look(downstream) == .executing)
    }

    @Test(arguments: UpstreamEnd.allCases, [true, false])
    func `the cancel rule cancels an operation unless its dependency succeeds`(
        end: UpstreamEnd, endsFirst: Bool
    ) throws {
        let downstream = try downstream(end, endsFirst: endsFirst, rule: .cancel)
        let cause = downstream.cancellationCause
        switch end {
        case .succeeds:
            #expect(Look(downstream) == .waiting)
        case .fails:
            #expect(cause?.code == .dependencyFailed)
            #expect(cause?.underlyingError as? Flaw == .first)
            #expect(cause?.message.contains("Source") == true)
        case .isCancelled:
            #expect(cause?.code == .dependencyCancelled)
            #expect(cause?.underlyingCause?.message == "upstream")
            #expect(cause?.message.contains("Source") == true)
        }
        downstream.start()
        #expect(Look(downstream) == (end == .succeeds ? .executing : .cancelled))
        #expect(downstream.calls.events == (end == .succeeds ? ["main"] : []))
    }

    @Test(arguments: UpstreamEnd.allCases, [true, false])
    func `the fail rule gives an operation its own error unless its dependency succeeds`(
        end: UpstreamEnd, endsFirst: Bool
    ) throws {
        let downstream = try downstream(
            end, endsFirst: endsFirst,
            rule: .fail { failure in
                switch failure {
                case .failed(let error): .converted("failed \(error)")
                case .cancelled(let cause): .converted("cancelled \(cause.message)")
                }
            })
        downstream.start()
        switch end {
        case .succeeds: #expect(Look(downstream) == .executing)
        case .fails: #expect(downstream.outcome == .failure(.converted("failed first")))
        case .isCancelled: #expect(downstream.outcome == .failure(.converted("cancelled upstream")))
        }
        if end != .succeeds {
            #expect(Look(downstream) == .finished)
            #expect(downstream.calls.events == [])
        }
    }

    @Test(arguments: UpstreamEnd.allCases)
    func `a started operation follows its rule when the last dependency ends`(end: UpstreamEnd) async throws {
        let upstream = HandDriven(), queue = DispatchQueue(label: "handlers"), told = EventRecorder<String>()
        let runs = HandDriven(hooks: .init(main: { $0.finish(withResult: 1) }))
        let stops = HandDriven(hooks: .init(main: { $0.finish(withResult: 2) }))
        let fails = HandDriven(hooks: .init(main: { $0.finish(withResult: 3) }))
        try runs.depend(on: upstream, otherwise: .runAnyway)
        try stops.depend(on: upstream, otherwise: .cancel)
        try fails.depend(on: upstream, otherwise: .fail { _ in .second })
        for operation in [runs, stops, fails] {
            operation.observe(on: queue) { told.record($0.word) }
            operation.start()
        }
        end.perform(on: upstream)
        for operation in [runs, stops, fails] { await operation.ended() }
        await queue.drain()
        switch end {
        case .succeeds: #expect(Set(told.events) == ["success 1", "success 2", "success 3"])
        case .fails: #expect(Set(told.events) == ["success 1", "cancelled dependencyFailed", "failure second"])
        case .isCancelled:
            #expect(Set(told.events) == ["success 1", "cancelled dependencyCancelled", "failure second"])
        }
    }

    @Test func `a failure cancels a chain of dependents, and each cause contains the previous one`() async throws {
        let chain = (0..<4).map { HandDriven("\($0)") }
        for (upstream, downstream) in zip(chain, chain.dropFirst()) {
            try downstream.depend(on: upstream, otherwise: .cancel)
        }
        for operation in chain.reversed() { operation.start() }
        chain[0].finish(withError: .second)
        for operation in chain { await operation.ended() }
        let cause = chain[3].cancellationCause
        #expect(cause?.code == .dependencyCancelled)
        #expect(cause?.underlyingCause?.code == .dependencyCancelled)
        #expect(cause?.underlyingCause?.underlyingCause?.code == .dependencyFailed)
        #expect(cause?.underlyingCause?.underlyingCause?.underlyingError as? Flaw == .second)
        #expect(chain.map(\.calls.events) == [["main"], [], [], []])
    }

    @Test func `a rule does not change an outcome that is already decided`() throws {
        let upstream = HandDriven(), downstream = HandDriven()
        try downstream.depend(on: upstream, otherwise: .fail { _ in .second })
        try downstream.depend(on: upstream, otherwise: .cancel)
        downstream.finish(withResult: 1)
        UpstreamEnd.fails.perform(on: upstream)
        downstream.start()
        #expect(downstream.outcome == .success(1))
    }

    @Test func `an operation canceled by its rule ends immediately although another dependency is pending`() throws {
        let failing = HandDriven(), pending = HandDriven(), downstream = HandDriven()
        try downstream.depend(on: pending, otherwise: .cancel)
        try downstream.depend(on: failing, otherwise: .cancel)
        downstream.start()
        UpstreamEnd.fails.perform(on: failing)
        #expect(Look(downstream) == .cancelled)
        UpstreamEnd.succeeds.perform(on: pending)
        #expect(downstream.calls.events == [])
    }

    @Test(arguments: [UpstreamEnd.fails, .isCancelled])
    func `an operation that fails by its rule ends immediately although another dependency is pending`(
        end: UpstreamEnd
    ) throws {
        let failing = HandDriven(), pending = HandDriven(), downstream = HandDriven()
        try downstream.depend(on: pending, otherwise: .cancel)
        try downstream.depend(on: failing, otherwise: .fail { _ in .second })
        downstream.start()
        end.perform(on: failing)
        #expect(Look(downstream) == .finished)
        #expect(downstream.outcome == .failure(.second))
        UpstreamEnd.succeeds.perform(on: pending)
        #expect(downstream.calls.events == [])
    }

    @Test func `an operation that failed by its rule before its start waits only for the start`() throws {
        let failing = HandDriven(), pending = HandDriven(), downstream = HandDriven()
        try downstream.depend(on: pending, otherwise: .cancel)
        try downstream.receive(from: failing, otherwise: .fail { _ in .second }) { _, _ in }
        UpstreamEnd.fails.perform(on: failing)
        #expect(downstream.outcome == .failure(.second))
        #expect(Look(downstream) == .waiting)
        UpstreamEnd.fails.perform(on: pending)
        #expect(downstream.outcome == .failure(.second))
        downstream.start()
        #expect(Look(downstream) == .finished)
        #expect(downstream.calls.events == [])
    }

    @Test func `an operation that fails by its rule in a queue ends although a dependency is pending`() async throws {
        let failing = HandDriven(), pending = HandDriven(), downstream = HandDriven(), queue = OperationQueue()
        try downstream.depend(on: pending, otherwise: .cancel)
        try downstream.depend(on: failing, otherwise: .fail { _ in .second })
        queue.addOperation(downstream)
        UpstreamEnd.fails.perform(on: failing)
        await downstream.ended()
        #expect(downstream.outcome == .failure(.second))
        #expect(!pending.isFinished)
    }

    @Test(.comparesObjects)
    func `two rules for the same dependency both apply`() throws {
        let upstream = HandDriven(), downstream = HandDriven()
        downstream.addDependency(upstream)
        try downstream.depend(on: upstream, otherwise: .cancel)
        downstream.addDependency(upstream)
        #expect(downstream.dependencies == [upstream])
        UpstreamEnd.fails.perform(on: upstream)
        #expect(downstream.isCancelled)
    }

    @Test(arguments: StartingWay.allCases)
    func `a rule may block on an operation that has the same dependency without a rule`(_ way: StartingWay) async throws
    {
        let failing = HandDriven("failing"), ruled = HandDriven("ruled"), starter = Starter(way), waited = Gate()
        let sibling = SyncProbe("sibling") { $0.finish(withResult: 1) }
        try ruled.depend(
            on: failing,
            otherwise: .fail { _ in
                sibling.waitUntilFinished()
                waited.open()
                return .second
            })
        sibling.addDependency(failing)
        for operation in [failing, ruled, sibling] { try starter.start(operation) }
        #expect(await failing.calls.events(atLeast: 1) == ["main"])
        Thread { failing.finish(withError: .first) }.start()
        try await waited.passage(within: .seconds(30))
        await ruled.ended()
        #expect(ruled.outcome == .failure(.second) && sibling.outcome == .success(1))
    }
}
