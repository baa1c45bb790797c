// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import AllocationCounter
import BenchmarkSupport
import Dispatch
import Foundation
import NetworkBenchmarkSupport
import OperationCore
import OperationNetworking
import OperationTestKit

/// What policies cost that are set and have nothing to do, on the stub session.
func idlePolicies(_ scale: Scale) -> [Figure] {
    let count = scale.isSmoke ? 200 : 4_000
    let bare = Client { _ in }
    let guarded = Client { operation in
        operation.retry = .standard
        operation.offline = .standard
    }
    var times: [Double] = []
    for round in 0..<(scale.isSmoke ? 3 : 31) {
        // They take turns in coming first.
        let (first, second) = round.isMultiple(of: 2) ? (bare, guarded) : (guarded, bare)
        let (one, other) = (first.microseconds(count), second.microseconds(count))
        times.append(round.isMultiple(of: 2) ? other - one : one - other)
    }
    func target(_ bound: Double) -> Figure.Target { scale.isSmoke ? .none : .atMost(bound) }
    var figures = [
        Figure.plain(
            "retry and offline, idle: processor time of a request", unit: "µs", median(times), target: target(1.5))
    ]
    if allocation_counter_is_available() == 1 {
        let blocks = guarded.blocks(count) - bare.blocks(count)
        figures.append(.plain("retry and offline, idle: allocations of a request", unit: "", blocks, target: target(4)))
    }
    return figures
}

/// Asks for something again and again, one request after another.
private struct Client {
    private let session = StubSession()
    private let request: NetworkRequest?
    private let prepare: (NetworkDataOperation<Int>) -> Void

    init(_ prepare: @escaping (NetworkDataOperation<Int>) -> Void) {
        session.route("GET", "/") { _ in .text("Hello") }
        request = URL(string: "http://example.com/").flatMap { try? NetworkRequest(url: $0) }
        self.prepare = prepare
    }

    private func send(_ count: Int) {
        guard let request else { return }
        for _ in 0..<count {
            let operation = NetworkDataOperation(request: request, urlSession: session) { data, _ in data.count }
            prepare(operation)
            _ = try? operation.startAndWait()
        }
    }

    func microseconds(_ count: Int) -> Double {
        send(count / 10)
        let before = ProcessTime.microseconds
        send(count)
        return (ProcessTime.microseconds - before) / Double(count)
    }

    func blocks(_ count: Int) -> Double {
        send(count / 10)
        let before = allocation_counter_blocks()
        allocation_counter_set_counting(1)
        send(count)
        allocation_counter_set_counting(0)
        return Double(allocation_counter_blocks() - before) / Double(count)
    }
}
