// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import NetworkBenchmarkSupport

/// Returns the memory of many requests that wait for a response, each over its own connection.
func heldRequests(_ scale: Scale) -> [Figure] {
    let count = scale.isSmoke ? 200 : 10_000
    let server = SilentServer()
    let rounds = (0..<(scale.isSmoke ? 1 : 3)).compactMap { _ -> (ours: Double, peer: Double)? in
        let arguments = ["http://127.0.0.1:\(server.port)/", "\(count)"]
        guard
            let ours = growth(ChildProcess([TransportBenchmark.Role.hold.rawValue] + arguments), server, count),
            let peer = growth(ChildProcess(["hold"] + arguments, program: Preparation.peer), server, count)
        else { return nil }
        return (ours, peer)
    }
    guard !rounds.isEmpty else {
        print("the held requests failed")
        return []
    }
    let difference = median(rounds.map { $0.ours - $0.peer })
    let figure = Figure.plain(
        "memory per request in flight, beyond C", unit: "KiB", difference, target: scale.isSmoke ? .none : .atMost(8))
    let bare = [
        Figure.plain("memory per request in flight", unit: "KiB", median(rounds.map(\.ours))),
        Figure.plain("memory per request in flight, C", unit: "KiB", median(rounds.map(\.peer))),
    ]
    return [figure] + bare
}

/// Returns the growth of a process in KiB for each request that it has sent.
private func growth(_ child: ChildProcess?, _ server: SilentServer, _ count: Int) -> Double? {
    guard let child else { return nil }
    defer {
        child.kill()
        server.empty()
    }
    child.waitForWord()
    let before = child.memory
    child.goOn()
    for _ in 0..<3_000 where server.count < count { usleep(10_000) }
    guard server.count == count else { return nil }
    // A client sends each request directly after its connection is accepted.
    sleep(1)
    return Double(child.memory - before) / Double(count) / 1_024
}
