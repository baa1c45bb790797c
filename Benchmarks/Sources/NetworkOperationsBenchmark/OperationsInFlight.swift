// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import AllocationCounter
import BenchmarkSupport
import Foundation
import NetworkBenchmarkSupport

/// Returns the heap of operations that wait for a response, without the heap of their tasks.
func operationsInFlight(_ scale: Scale) -> [Figure] {
    guard allocation_counter_is_available() == 1 else { return [] }
    let count = scale.isSmoke ? 500 : 5_000
    let server = SilentServer()
    var sizes: [Carrier: [Double]] = [:]
    for _ in 0..<3 {
        for carrier in [Carrier.task, .manager, .queue, .standard] {
            guard let size = measure(carrier, server, count) else { return [] }
            sizes[carrier, default: []].append(size)
        }
    }
    func figure(_ name: String, _ carrier: Carrier, _ target: Figure.Target) -> Figure? {
        guard let ours = sizes[carrier], let bare = sizes[.task] else { return nil }
        return .plain(
            "heap in flight, \(name), beyond a task", unit: "B", median(zip(ours, bare).map { $0 - $1 }),
            target: target)
    }
    return [
        figure("QueueManager", .manager, .atMost(3 * 1_024)),
        figure("OperationQueue", .queue, .atMost(3 * 1_024)),
        figure("default session", .standard, .atMost(2 * 1_024)),
        .plain("heap in flight, a task", unit: "B", median(sizes[.task] ?? [0])),
    ].compactMap { $0 }
}

/// Returns the bytes of heap per request.
private func measure(_ carrier: Carrier, _ server: SilentServer, _ count: Int) -> Double? {
    let role = NetworkOperationsBenchmark.Role.hold.rawValue
    guard let child = ChildProcess([role, carrier.rawValue, "http://127.0.0.1:\(server.port)/", "\(count)"]) else {
        return nil
    }
    defer {
        child.kill()
        server.empty()
    }
    for _ in 0..<3_000 where server.count <= count { usleep(10_000) }
    guard server.count == count + 1 else {
        print("\(carrier) failed: \(server.count) requests instead of \(count + 1)")
        return nil
    }
    // A client sends each request directly after its connection is accepted.
    sleep(1)
    child.goOn()
    guard let bytes = child.numbers().first else { return nil }
    return bytes / Double(count)
}
