// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import NetworkBenchmarkSupport
import OperationCore
import OperationNetworking

/// A client that sends small requests, a number of them at a time, and prints the seconds, the microseconds of
/// processor time and the failures.
///
/// The client runs in its own process, so that its processor time can be measured.
struct SmallClient {
    /// The number of operations that are added to a queue together.
    private static let wave = 1_000

    let carrier: Carrier
    let request: NetworkRequest
    let session: any NetworkSession
    let count: Int
    let inFlight: Int

    init?(_ arguments: [String]) {
        guard arguments.count == 4, let carrier = Carrier(rawValue: arguments[0]), let url = URL(string: arguments[1]),
            let request = try? NetworkRequest(url: url), let count = Int(arguments[2]),
            let inFlight = Int(arguments[3])
        else { return nil }
        (self.carrier, self.request, self.count, self.inFlight) = (carrier, request, count, inFlight)
        session = carrier.makeSession(inFlight: inFlight)
    }

    func run() {
        // First requests exclude the cost of first uses.
        _ = send(max(count / 10, 100))
        let start = DispatchTime.now().uptimeNanoseconds
        let before = ProcessTime.microseconds
        let failed = send(count)
        let processor = ProcessTime.microseconds - before
        let seconds = Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
        print("\(seconds) \(processor) \(failed)")
    }

    /// Sends requests and returns the number of failures.
    private func send(_ count: Int) -> Int {
        switch carrier {
        case .task: return sendByTasks(count)
        case .queue:
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = inFlight
            return inWaves(count) { queue.addOperations($0, waitUntilFinished: true) }
        case .manager, .subclass, .endpoint, .exchange, .standard:
            let queue = QueueManager(width: inFlight)
            return inWaves(count) { operations in
                try? queue.add(operations)
                try? queue.waitUntilAllFinished()
            }
        }
    }

    private func sendByTasks(_ count: Int) -> Int {
        let rest = Countdown(count)
        @Sendable func next() {
            guard rest.takeOne() else { return }
            let receiver = AlbumReceiver { album in
                rest.end(isGood: album?.year == 1959)
                next()
            }
            session.makeTask(with: request, receiver: receiver).resume()
        }
        for _ in 0..<inFlight { next() }
        return rest.wait()
    }

    private func inWaves(_ count: Int, _ run: ([NetworkDataOperation<Album>]) -> Void) -> Int {
        var failed = 0
        var made = 0
        while made < count {
            let operations = (made..<min(made + Self.wave, count)).map { _ in carrier.makeOperation(request, session) }
            run(operations)
            failed += operations.count { $0.outcome?.result?.year != 1959 }
            made += operations.count
        }
        return failed
    }
}
