// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

// Requests a URL with a session that the environment configures, and prints the status and the body, or the error code:
// EnvironmentProbe URL [AUTHORITY [NAME:PORT:ADDRESS:PORT [LIBRARY]]]
//
// If there is a LIBRARY, the session uses this libcurl, and reads the AUTHORITY into memory.

import Foundation
import OperationNetworking

#if OPERATIONKIT_LIBCURL
    final class Answer: NetworkReceiver {
        let isOver = DispatchSemaphore(value: 0)
        // Sendable: written by one task, and read after its end.
        nonisolated(unsafe) var status = 0
        nonisolated(unsafe) var body = Data()
        nonisolated(unsafe) var error: NetworkError?

        func task(_ task: any NetworkTask, didReceive head: ResponseHead) { status = head.status }

        func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) { body.append(contentsOf: bytes) }

        func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
            self.error = error
            isOver.signal()
        }
    }

    let arguments = CommandLine.arguments
    var configuration = CurlSession.Configuration()
    if arguments.count > 2, !arguments[2].isEmpty {
        let file = URL(fileURLWithPath: arguments[2])
        configuration.tls.trust = try arguments.count > 4 ? .data(Data(contentsOf: file)) : .file(file)
    }
    if arguments.count > 3 {
        let parts = arguments[3].split(separator: ":").map(String.init)
        configuration.addressOverrides = [parts[0] + ":" + parts[1]: parts[2] + ":" + parts[3]]
    }
    if arguments.count > 4 { CurlLibrary.seek(only: arguments[4]) }
    if arguments.count > 1, let url = URL(string: arguments[1]) {
        let answer = Answer()
        let session = CurlSession(configuration: configuration)
        session.makeTask(with: try NetworkRequest(url: url), receiver: answer).resume()
        answer.isOver.wait()
        print(answer.error.map { "\($0.code)" } ?? "\(answer.status) \(String(decoding: answer.body, as: UTF8.self))")
    }
#endif
