// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Dependencies between managed and plain operations, in an `OperationQueue` and without a queue.
@Suite(.timeLimit(.minutes(3)))
struct PlainOperationDependencyTests {
    private let queue = OperationQueue()

    @Test(arguments: UpstreamEnd.allCases)
    func `a plain operation runs however its managed dependency ends`(end: UpstreamEnd) async {
        let own = HandDriven(), ran = EventRecorder<Int>()
        let foreign = BlockOperation { ran.record(1) }
        foreign.addDependency(own)
        queue.addOperation(foreign)
        end.perform(on: own)
        #expect(await ran.events(atLeast: 1) == [1])
    }

    @Test func `a canceled plain dependency triggers the rule of each dependent`() async throws {
        let foreign = BlockOperation(), strict = HandDriven(), failing = HandDriven(), plain = HandDriven()
        foreign.name = "Foreign"
        try strict.depend(on: foreign, otherwise: .cancel)
        try failing.depend(on: foreign, otherwise: .fail { .converted("\($0)") })
        try plain.depend(on: foreign, otherwise: .runAnyway)
        foreign.cancel()
        foreign.start()
        #expect(foreign.isFinished)
        #expect(strict.cancellationCause?.code == .dependencyCancelled)
        #expect(strict.cancellationCause?.message.contains("Foreign") == true)
        failing.start()
        #expect(failing.outcome?.error != nil)
        #expect(Look(plain) == .waiting)
    }

    @Test func `operations that are connected by an edge can be freed in any order`() {
        let census = LiveObjects(), own = HandDriven(), foreign = BlockOperation()
        do {
            let dependent = census.track(BlockOperation())
            dependent.addDependency(own)
            census.track(HandDriven()).addDependency(foreign as Operation)
        }
        #expect(census.types == [])
        UpstreamEnd.succeeds.perform(on: own)
        foreign.start()
        do {
            let dependent = BlockOperation(), other = HandDriven()
            dependent.addDependency(census.track(HandDriven()))
            other.addDependency(census.track(BlockOperation()) as Operation)
            #expect(census.count == 2)
        }
        #expect(census.types == [])
    }

    @Test func `a chain of managed and plain operations runs in order in a queue`() async {
        let order = EventRecorder<Int>(), count = 40
        let chain = (0..<count).map { number -> Operation in
            number.isMultiple(of: 2)
                ? BlockOperation { order.record(number) } : ClosureOperation { order.record(number) }
        }
        for (upstream, downstream) in zip(chain, chain.dropFirst()) {
            if let own = upstream as? ManagedOperation {
                downstream.addDependency(own)
            } else {
                downstream.addDependency(upstream)
                #expect(downstream.dependencies == [upstream])
            }
            #expect(!downstream.isReady && downstream.dependencies.count == 1)
        }
        for operation in chain.reversed() { queue.addOperation(operation) }
        #expect(await order.events(atLeast: count) == Array(0..<count))
    }
}
