// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit

/// Requests that wait while no network is available, and resume later.
struct OfflineTour {
    private let server: LoopbackServer
    private let cable = Cable()
    private let offlineWaiting: OfflineWaiting
    private let callbacks = DispatchQueue(label: "resilience")

    init() throws {
        server = try LoopbackServer()
        server.route("GET", "/*") { .text($0.path) }
        offlineWaiting = OfflineWaiting(monitor: cable, settling: .milliseconds(100))
    }

    func run() async throws {
        print("== Offline")
        try await waits()
        await givesUp()
        try await holdsQueue()
    }

    private func operation(
        _ path: String, _ change: (inout OfflinePolicy) -> Void = { _ in }
    ) -> NetworkDataOperation<String> {
        let operation = NetworkDataOperation(url: server.url(path)) { data, _ in String(decoding: data, as: UTF8.self) }
        operation.name = path
        operation.callbackQueue = callbacks
        var policy = OfflinePolicy(waiting: offlineWaiting)
        // By default, requests to `localhost` and loopback addresses do not wait for the network.
        policy.concerns = { _ in true }
        change(&policy)
        operation.offline = policy
        operation.offlineHandler = { print("  \(path) waits: no network") }
        return operation
    }

    private func waits() async throws {
        print("The cable is unplugged: four uploads wait in order and use no slot of their queue")
        cable.pull()
        let queue = QueueManager("uploads", width: 1)
        let operations = (0..<4).map { operation("/\($0)") }
        for (index, operation) in operations.enumerated() {
            try queue.add(operation)
            while offlineWaiting.waitingCount <= index { try await Task.sleep(for: .milliseconds(1)) }
        }
        let other = ClosureOperation { "runs in the meantime" }
        try queue.add(other)
        let beside = try await other.value
        callbacks.sync {}
        print("  another operation \(beside)")
        print("  \(queue.explain(operations[0]))")
        expect(server.counts.heads == 0 && queue.counts.resting == 4)
        print("The cable is plugged in again: the uploads resume one after another")
        let began = ContinuousClock.now
        cable.putIn()
        for operation in operations {
            let path = try await operation.value
            print("  \(path) after \(inSeconds(began.duration(to: .now)))")
        }
        expect(server.requests.map(\.path) == ["/0", "/1", "/2", "/3"])
        expect(operations.allSatisfy { $0.attemptCount == 1 })
    }

    private func givesUp() async {
        print("One operation waits up to its limit, and another operation fails immediately")
        cable.pull()
        let patient = operation("/patient") { $0.longestWait = .milliseconds(200) }
        let hurried = operation("/hurried") { $0.beforeSending = .fail }
        for operation in [patient, hurried] { operation.start() }
        let errors = [await patient.finalOutcome.error, await hurried.finalOutcome.error]
        callbacks.sync {}
        for error in errors { print("  \(error?.description ?? "no error")") }
        expect(errors.map { $0?.code } == [.offlineTooLong, .offline])
        cable.putIn()
    }

    private func holdsQueue() async throws {
        print("A hold stops a whole queue")
        let queue = QueueManager("downloads", width: 2)
        let hold = queue.hold(
            whileOffline: cable, settling: .milliseconds(100), callbackQueue: callbacks,
            offlineHandler: { print("  the queue \($0 ? "waits: no network" : "resumes")") })
        cable.pull()
        let operation = ClosureOperation { 42 }
        operation.name = "report"
        try queue.add(operation)
        print("  \(queue.explain(operation))")
        expect(queue.isSuspended)
        cable.putIn()
        expect(try await operation.value == 42)
        callbacks.sync {}
        hold.cancel()
    }

    /// Returns the duration as text, in seconds with three decimals.
    private func inSeconds(_ duration: Duration) -> String {
        duration.formatted(.units(allowed: [.seconds], width: .narrow, fractionalPart: .show(length: 3)))
    }
}

/// A network that is available while its cable is connected, as an example of a custom monitor.
private final class Cable: ConnectivityMonitor {
    private let board = ConnectivityBoard(.satisfied)

    var connectivity: Connectivity { board.connectivity }

    func observe(_ body: @escaping @Sendable (Connectivity) -> Void) -> ConnectivityObservation {
        board.observe(for: self, body)
    }

    func pull() { board.write(.unsatisfied) }
    func putIn() { board.write(.satisfied) }
}
