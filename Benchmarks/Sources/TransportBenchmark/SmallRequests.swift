// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import NetworkBenchmarkSupport

/// The cost of one client process for each request.
private struct Cost {
    var seconds: Double
    var processor: Double
}

/// Returns the times for small requests over kept connections, sixteen at a time and one at a time.
func smallRequests(_ server: LocalNginx, _ scale: Scale) -> [Figure] {
    let rounds = scale.isSmoke ? 1 : 7
    let count = scale.isSmoke ? 500 : 40_000
    let many = measure(server, count: count, inFlight: 16, rounds: rounds, peers: ["peer", "urlsession"])
    let one = measure(server, count: count / 4, inFlight: 1, rounds: rounds, peers: ["urlsession"])
    return figures(many, one, scale)
}

/// Returns the costs of OperationKit and of each peer, measured one after another in each round.
private func measure(
    _ server: LocalNginx, count: Int, inFlight: Int, rounds: Int, peers: [String]
) -> [String: [Cost]] {
    var costs: [String: [Cost]] = [:]
    for _ in 0..<rounds {
        for kind in ["curl"] + peers {
            // URLSession is slow, and a tenth of the requests is enough to measure its cost.
            let own = kind == "urlsession" ? max(count / 10, 100) : count
            if let cost = run(kind, server, count: own, inFlight: inFlight) { costs[kind, default: []].append(cost) }
        }
    }
    return costs
}

private func run(_ kind: String, _ server: LocalNginx, count: Int, inFlight: Int) -> Cost? {
    let arguments = [server.url("small"), "\(count)", "\(inFlight)"]
    let child =
        kind == "peer"
        ? ChildProcess(arguments, program: Preparation.peer)
        : ChildProcess([TransportBenchmark.Role.client.rawValue, kind] + arguments)
    guard let numbers = child?.numbers(), numbers.count == 3, numbers[2] == 0 else {
        print("\(kind) failed")
        return nil
    }
    return Cost(seconds: numbers[0] / Double(count), processor: numbers[1] / Double(count))
}

private func figures(_ many: [String: [Cost]], _ one: [String: [Cost]], _ scale: Scale) -> [Figure] {
    func pair(_ costs: [String: [Cost]], _ peer: String, _ value: (Cost) -> Double) -> Pair? {
        guard let ours = costs["curl"]?.map(value), let others = costs[peer]?.map(value), !ours.isEmpty,
            ours.count == others.count
        else { return nil }
        return Pair(ours: ours, peer: others)
    }
    /// A smoke run sends so few requests that its time is mostly the start of a process.
    func target(_ bound: Double) -> Figure.Target { scale.isSmoke ? .none : .atLeast(bound) }
    let processor = { (cost: Cost) in cost.processor }
    let wall = { (cost: Cost) in cost.seconds * 1e6 }
    return [
        pair(many, "urlsession", processor).map {
            .speedup("CPU per request, 16 in flight, to URLSession", unit: "µs", $0, target: target(8))
        },
        pair(many, "urlsession", wall).map {
            .speedup("wall time per request, 16 in flight, to URLSession", unit: "µs", $0, target: target(6))
        },
        pair(many, "peer", wall).map {
            .speedup("wall time per request, 16 in flight, to C", unit: "µs", $0, target: target(0.7))
        },
        pair(many, "peer", processor).map {
            .speedup("CPU per request, 16 in flight, to C", unit: "µs", $0, target: target(0.6))
        },
        pair(one, "urlsession", wall).map {
            .speedup("wall time per request, one at a time, to URLSession", unit: "µs", $0, target: target(2))
        },
    ].compactMap { $0 }
}
