// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Tests tasks of Foundation's session before Foundation is involved.
@Suite(.timeLimit(.minutes(3)))
struct URLSessionTransferTaskTests {
    @Test(arguments: [false, true])
    func `a task canceled while its body is produced is released`(_ isSuspended: Bool) async throws {
        let session = URLSession(configuration: .ephemeral)
        defer { session.closeNetworkTasks() }
        let asked = Gate()
        let producer = ClosureProducer { _, _, _ in
            asked.open()
            return .notYet
        }
        let url = try #require(URL(string: "http://127.0.0.1:9/"))
        let body = RequestBody.stream(canBeSentAgain: false) { producer }
        let receiver = RecordingReceiver()
        weak var left: AnyObject?
        do {
            let task = session.makeTask(with: try NetworkRequest("PUT", url: url, body: body), receiver: receiver)
            left = task
            task.resume()
            await asked.passage()
            if isSuspended { task.suspend() }
            task.cancel()
        }
        let record = await receiver.end()
        #expect(record.error?.code == .cancelled && record.ends == 1)
        while left != nil {
            try Task.checkCancellation()
            await Task.yield()
        }
    }
}
