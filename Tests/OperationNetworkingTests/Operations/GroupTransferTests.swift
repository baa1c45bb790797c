// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Testing

/// Tests network operations as children of groups.
@Suite("Progress of network operations in groups", .timeLimit(.minutes(1)))
struct GroupTransferTests {
    @Test func `the progress of a group contains the bytes of its downloads, by their weight`() async throws {
        let bench = try OperationBench()
        let gates = [Gate(), Gate()]
        bench.server.route("GET", "/") { .pattern(4_000_000, stallingAfter: 1_000_000, until: gates[$0.number]) }
        let downloads = (0..<2).map { _ in
            bench.watched(
                NetworkDataOperation(url: bench.server.url("/"), urlSession: bench.session) { data, _ in data.count })
        }
        let group = GroupOperation(policy: .failFast)
        try group.add(downloads[0])
        try group.add(downloads[1], weight: 3)
        group.callbackQueue = bench.callbacks
        let (quarter, more, told) = (Gate(), Gate(), EventRecorder<Double>())
        group.groupProgressHandler = {
            told.record($0.fraction)
            // Not every step up to the first quarter is reported.
            if $0.fraction > 0.2 { quarter.open() }
            if $0.fraction > 0.251 { more.open() }
        }
        group.start()
        await quarter.passage()
        // The value is a sum of fractions.
        #expect((0.799...1.001).contains(group.groupProgress.completedWeight) && !group.isFinished)
        gates[0].open()
        await more.passage()
        gates[1].open()
        try await group.value
        await bench.settled()
        #expect(told.events == told.events.sorted() && told.events.last == 1)
        #expect(told.events.contains { $0 > 0.25 && $0 < 1 })
    }

    @Test func `an upload counts the sent bytes of its body, and is complete only after its response`() async throws {
        let bench = try OperationBench()
        let gate = Gate()
        bench.server.route("POST", "/") { _ in LoopbackAnswer(.stall(until: gate), .head(204, [:])) }
        let group = GroupOperation.all([bench.upload(body: .data(Data(count: 1 << 20)))])
        group.start()
        while group.groupProgress.fraction < 0.99 { await Task.yield() }
        #expect(group.groupProgress.fraction < 1)
        gate.open()
        #expect(try await group.value == [""])
        #expect(group.groupProgress.fraction == 1)
    }
}
