// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import AllocationCounter
import BenchmarkSupport
import NetworkBenchmarkSupport

/// Returns the cost of policies that are set but have no effect, with a stub session.
func idlePolicies(_ scale: Scale) -> [Figure] {
    let count = scale.isSmoke ? 200 : 20_000
    let clients = IdlePolicies.allCases.compactMap { IdleClient($0) }
    var times: [[Double]] = clients.map { _ in [] }
    var failures = 0
    for round in 0..<(scale.isSmoke ? 3 : 21) {
        // The order changes in each round, because the state of the caches depends on the order.
        for index in clients.indices.map({ ($0 + round) % clients.count }) {
            failures += clients[index].send(count / 10)
            let before = ProcessTime.microseconds
            failures += clients[index].send(count)
            times[index].append((ProcessTime.microseconds - before) / Double(count))
        }
    }
    let blocks = clients.map { client in
        let before = allocation_counter_blocks()
        allocation_counter_set_counting(1)
        failures += client.send(count)
        allocation_counter_set_counting(0)
        return Double(allocation_counter_blocks() - before) / Double(count)
    }
    var figures: [Figure] = []
    for (index, client) in clients.enumerated().dropFirst() {
        /// The figures for individual policies have no target.
        func target(_ bound: Double) -> Figure.Target {
            client.policies == .all && !scale.isSmoke ? .atMost(bound) : .none
        }
        let name = client.policies.rawValue + (client.policies.observes ? "" : ", idle")
        let time = median(zip(times[index], times[0]).map { $0 - $1 })
        figures.append(.plain("\(name): processor time of a request", unit: "µs", time, target: target(1)))
        guard allocation_counter_is_available() == 1 else { continue }
        figures.append(
            .plain("\(name): allocations of a request", unit: "", blocks[index] - blocks[0], target: target(3)))
    }
    // Requests that fail would be cheaper than requests that succeed.
    if clients.isEmpty { failures = 1 }
    figures.append(.plain("requests that failed", unit: "", Double(failures), target: .atMost(0)))
    return figures
}
