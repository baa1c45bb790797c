// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import AllocationCounter
import Foundation
import OperationCore
import OperationNetworking

/// A client that sends many requests at the same time to a server that never responds, and prints the used bytes of
/// heap.
struct HoldingClient {
    let carrier: Carrier
    let request: NetworkRequest
    let session: any NetworkSession
    let count: Int

    init?(_ arguments: [String]) {
        var options = TransferOptions()
        options.timeouts = .none
        guard arguments.count == 3, let carrier = Carrier(rawValue: arguments[0]), let url = URL(string: arguments[1]),
            let request = try? NetworkRequest(url: url, options: options), let count = Int(arguments[2])
        else { return nil }
        (self.carrier, self.request, self.count) = (carrier, request, count)
        session = carrier.makeSession(inFlight: count + 1)
    }

    /// Prints the bytes when the parent process reports that the server has received all requests.
    func run() {
        let manager = QueueManager(width: count + 1)
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = count + 1
        // The first request includes the cost of first uses.
        begin(manager, queue)
        usleep(300_000)
        allocation_counter_set_counting(1)
        for _ in 0..<count { begin(manager, queue) }
        _ = readLine()
        allocation_counter_set_counting(0)
        print(allocation_counter_live_bytes())
        exit(0)
    }

    private func begin(_ manager: QueueManager, _ queue: OperationQueue) {
        switch carrier {
        case .task: session.makeTask(with: request, receiver: AlbumReceiver { _ in }).resume()
        case .queue: queue.addOperation(carrier.makeOperation(request, session))
        case .manager, .subclass, .endpoint, .exchange, .standard:
            try? manager.add(carrier.makeOperation(request, session))
        }
    }
}
