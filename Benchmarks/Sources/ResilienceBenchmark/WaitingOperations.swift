// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import AllocationCounter
import BenchmarkSupport
import Dispatch
import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit

/// Returns the memory of operations that wait for the network, and the pace at which they resume.
func waitingOperations(_ scale: Scale) -> [Figure] {
    let count = scale.isSmoke ? 1_000 : 100_000
    let clock = ManualClock(), network = ManualConnectivity(.unsatisfied), session = StubSession()
    let offlineWaiting = OfflineWaiting(
        monitor: network, capacity: count, perSecond: 1_000, clock: clock, chance: { 0.5 })
    guard let request = URL(string: "http://example.com/").flatMap({ try? NetworkRequest(url: $0) }) else { return [] }
    session.route("GET", "/") { _ in .text("Hello") }
    let queue = DispatchQueue(label: "callbacks")
    let operations = (0..<count).map { _ in
        let operation = NetworkDataOperation(request: request, urlSession: session) { data, _ in data.count }
        operation.callbackQueue = queue
        operation.clock = clock
        operation.offline = OfflinePolicy(waiting: offlineWaiting)
        return operation
    }
    var figures: [Figure] = []
    let before = allocation_counter_live_bytes()
    allocation_counter_set_counting(1)
    for operation in operations { operation.start() }
    allocation_counter_set_counting(0)
    guard offlineWaiting.waitingCount == count else { return [] }
    if allocation_counter_is_available() == 1 {
        figures.append(
            .plain(
                "\(count) operations that wait for the network: heap of each beyond itself", unit: "B",
                Double(allocation_counter_live_bytes() - before) / Double(count), target: .atMost(1_024)))
    }
    network.write(.satisfied)
    clock.advance(by: .milliseconds(750))
    var most = 0
    for _ in 0..<(count / 100) {
        let waiting = offlineWaiting.waitingCount
        clock.advance(by: .milliseconds(100))
        most = max(most, waiting - offlineWaiting.waitingCount)
    }
    figures.append(
        .plain("operations of 100 that resume in a tenth of a second", unit: "", Double(most), target: .atMost(110)))
    figures.append(.plain("those that still wait", unit: "", Double(offlineWaiting.waitingCount), target: .atMost(0)))
    for operation in operations { operation.waitUntilFinished() }
    return figures
}
