// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import NetworkBenchmarkSupport

/// Returns the time for small JSON requests, sixteen at a time, with and without operations.
func smallOperations(_ scale: Scale) -> [Figure] {
    guard Preparation.run(), let server = LocalNginx(largeSize: 0) else {
        print("SKIPPED: there is no nginx, and it cannot be installed (see above).")
        return []
    }
    defer { server.stop() }
    let count = scale.isSmoke ? 2_000 : 40_000
    let carriers = [Carrier.task, .manager, .queue, .subclass, .endpoint, .exchange]
    var costs: [Carrier: [Double]] = [:]
    for round in 0..<(scale.isSmoke ? 3 : 7) {
        // The order changes in each round, because the state of the caches depends on the order.
        for index in carriers.indices {
            let carrier = carriers[(index + round) % carriers.count]
            guard let cost = measure(carrier, server, count) else { return [] }
            costs[carrier, default: []].append(cost)
        }
    }
    func figure(_ name: String, _ carrier: Carrier, _ target: Figure.Target) -> Figure? {
        guard let ours = costs[carrier], let bare = costs[.task] else { return nil }
        return .ratio(
            "CPU per small request, \(name), to a task", unit: "µs", Pair(ours: ours, peer: bare), target: target)
    }
    /// A smoke run sends too few requests for a target.
    func atMost(_ bound: Double) -> Figure.Target { scale.isSmoke ? .none : .atMost(bound) }
    return [
        figure("QueueManager", .manager, atMost(1.15)),
        figure("OperationQueue", .queue, atMost(1.4)),
        figure("of a subclass", .subclass, .none),
        figure("of an endpoint", .endpoint, .none),
        figure("with redirects", .exchange, .none),
    ].compactMap { $0 }
}

/// Returns the microseconds of processor time per request.
private func measure(_ carrier: Carrier, _ server: LocalNginx, _ count: Int) -> Double? {
    let role = NetworkOperationsBenchmark.Role.client.rawValue
    let child = ChildProcess([role, carrier.rawValue, server.url("small.json"), "\(count)", "16"])
    guard let numbers = child?.numbers(), numbers.count == 3, numbers[2] == 0 else {
        print("\(carrier) failed")
        return nil
    }
    return numbers[1] / Double(count)
}
