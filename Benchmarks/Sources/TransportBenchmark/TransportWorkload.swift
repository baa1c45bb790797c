// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation

/// What one process of a client took for each request.
private struct Cost {
    var seconds: Double
    var processor: Double
}

func transportWorkload(_ scale: Scale) -> [Figure] {
    guard let server = LocalNginx() else {
        print("There is no nginx. Run Scripts/prepare-transport-benchmark first.")
        return []
    }
    defer { server.stop() }
    let rounds = scale.isSmoke ? 1 : 7
    let count = scale.isSmoke ? 500 : 40_000
    let many = measure(server, count: count, inFlight: 16, rounds: rounds, peers: ["peer", "urlsession"])
    let one = measure(server, count: count / 4, inFlight: 1, rounds: rounds, peers: ["urlsession"])
    return figures(many, one)
}

/// The costs of ours and of each peer, in the same round next to each other.
private func measure(
    _ server: LocalNginx, count: Int, inFlight: Int, rounds: Int, peers: [String]
) -> [String: [Cost]] {
    var costs: [String: [Cost]] = [:]
    for _ in 0..<rounds {
        for kind in ["curl"] + peers {
            // URLSession is slow; a tenth shows its cost as well.
            let own = kind == "urlsession" ? max(count / 10, 100) : count
            if let cost = run(kind, server, count: own, inFlight: inFlight) { costs[kind, default: []].append(cost) }
        }
    }
    return costs
}

private func run(_ kind: String, _ server: LocalNginx, count: Int, inFlight: Int) -> Cost? {
    let arguments = [server.url, "\(count)", "\(inFlight)"]
    let process = Process()
    let output = Pipe()
    if kind == "peer" {
        let path = ProcessInfo.processInfo.environment["TRANSPORT_PEER"] ?? "Benchmarks/.build/transport-peer"
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
    } else {
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = ["--client", kind] + arguments
    }
    process.standardOutput = output
    guard (try? process.run()) != nil else { return nil }
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    let numbers = text.split(separator: " ").compactMap { Double($0.trimmingCharacters(in: .whitespacesAndNewlines)) }
    guard numbers.count == 3, numbers[2] == 0 else {
        print("\(kind) failed: \(text)")
        return nil
    }
    return Cost(seconds: numbers[0] / Double(count), processor: numbers[1] / Double(count))
}

private func figures(_ many: [String: [Cost]], _ one: [String: [Cost]]) -> [Figure] {
    func pair(_ costs: [String: [Cost]], _ peer: String, _ value: (Cost) -> Double) -> Pair? {
        guard let ours = costs["curl"]?.map(value), let others = costs[peer]?.map(value), !ours.isEmpty,
            ours.count == others.count
        else { return nil }
        return Pair(ours: median(ours), peer: median(others), ratio: median(zip(ours, others).map { $0 / $1 }))
    }
    let processor = { (cost: Cost) in cost.processor }
    let wall = { (cost: Cost) in cost.seconds * 1e6 }
    return [
        pair(many, "urlsession", processor).map {
            .speedup("CPU per request, 16 in flight, to URLSession", unit: "µs", $0, target: .atLeast(8))
        },
        pair(many, "urlsession", wall).map {
            .speedup("wall time per request, 16 in flight, to URLSession", unit: "µs", $0, target: .atLeast(6))
        },
        pair(many, "peer", wall).map {
            .speedup("wall time per request, 16 in flight, to C", unit: "µs", $0, target: .atLeast(0.7))
        },
        pair(many, "peer", processor).map {
            .speedup("CPU per request, 16 in flight, to C", unit: "µs", $0, target: .atLeast(0.6))
        },
        pair(one, "urlsession", wall).map {
            .speedup("wall time per request, one at a time, to URLSession", unit: "µs", $0, target: .atLeast(2))
        },
    ].compactMap { $0 }
}
