// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

/// A client that sends many requests at the same time to a server that never responds, and runs until it is terminated.
struct HeldRequests {
    let url: URL
    let count: Int

    init?(_ arguments: [String]) {
        guard arguments.count == 2, let url = URL(string: arguments[0]), let count = Int(arguments[1])
        else { return nil }
        (self.url, self.count) = (url, count)
    }

    func run() {
        #if OPERATIONKIT_LIBCURL
            var configuration = CurlSession.Configuration()
            configuration.maximumConnectionsPerHost = count
            configuration.maximumConnections = count
            let session = CurlSession(configuration: configuration)
            var options = TransferOptions()
            options.timeouts = .none
            say("ready")
            _ = readLine()
            for _ in 0..<count {
                guard let request = try? NetworkRequest(url: url, options: options) else { return }
                session.makeTask(with: request, receiver: SilentReceiver()).resume()
            }
            while true { sleep(3_600) }
        #endif
    }

    private func say(_ word: String) { FileHandle.standardOutput.write(Data("\(word)\n".utf8)) }
}

private final class SilentReceiver: NetworkReceiver {
    func task(_ task: any NetworkTask, didReceive head: ResponseHead) {}
    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {}
    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {}
}
