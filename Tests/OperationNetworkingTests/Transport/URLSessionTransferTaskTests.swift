// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A maker whose tasks do nothing, so that the test reports the events of Foundation.
private final class ScriptedTaskMaker: URLSessionTaskMaking {
    let isMade = Gate()
    let handler = Locked<URLSessionEvent.Handler?>(nil)
    let isInBackground = false

    func makeWork(
        _ request: NetworkRequest, _ body: URLSessionTransferBody, _ existing: (any SystemTask)?,
        _ handler: @escaping URLSessionEvent.Handler
    ) -> URLSessionWork {
        self.handler.withLock { $0 = handler }
        isMade.open()
        return URLSessionWork(task: CountingTask())
    }

    func wake() {}
    func idle(_ action: @escaping @Sendable () -> Void) {}
    func rest() {}
}

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

    @Test(
        arguments: [
            ("text/plain", "ab", 200, "ab"), ("multipart/x-mixed-replace; boundary=x", "ab", 200, "ababcd"),
            ("text/plain", "", 200, "abcd"), ("text/plain", "", 503, ""),
        ] as [(String, String, Int, String)])
    func `a response that begins again fails, unless it has parts or begins with the same headers and no bytes`(
        type: String, first: String, status: Int, text: String
    ) async throws {
        let maker = ScriptedTaskMaker()
        let adapter = URLSessionAdapter(
            maker, on: DispatchQueue(label: "scripted"), spoolingInto: FileManager.default.temporaryDirectory)
        let url = try #require(URL(string: "http://127.0.0.1:9/"))
        let recorder = RecordingReceiver()
        adapter.makeTask(with: try NetworkRequest(url: url), receiver: recorder).resume()
        await maker.isMade.passage()
        let handler = maker.handler.withLock { $0 }
        let report = try #require(handler)
        for (code, part) in [(200, first), (status, "abcd")] {
            let head = HTTPURLResponse(
                url: url, statusCode: code, httpVersion: nil, headerFields: ["Content-Type": type])
            report(.response(try #require(head)))
            if !part.isEmpty { report(.bytes(Data(part.utf8))) }
        }
        report(.end(nil))
        let record = await recorder.end()
        #expect(record.text == text)
        #expect(text == first ? record.code == .connectionLost : record.error == nil)
    }

    @Test(
        arguments: [
            ("Empty reply from server", .connectionLost), ("Recv failure: No route to host", .connectionLost),
            ("OpenSSL SSL_read: Connection reset by peer, errno 104", .connectionLost),
            ("OpenSSL SSL_read: error:0A000126:SSL routines::unexpected eof while reading", .connectionLost),
            ("OpenSSL SSL_read: tlsv13 alert certificate required", .clientCertificateRejected),
            ("transfer closed with 5 bytes remaining to read", .truncatedBody), ("a new message", .transferFailed),
            ("Connection timed out after 300 milliseconds", .timedOut),
            ("Failed to connect to localhost port 1 after 0 ms: Connection refused", .cannotConnect),
            ("Failed to connect to ssl.example.com port 443: Network is unreachable", .notConnected),
            ("OpenSSL SSL_connect: Connection reset by peer in connection to a:443", .secureConnectionFailed),
            ("SSL certificate problem: self-signed certificate", .untrustedCertificate),
        ] as [(String, NetworkError.Code)])
    func `only a failure before the request was sent counts as unsent`(text: String, code: NetworkError.Code) {
        #if canImport(FoundationNetworking)
            // If an address of the host refused the connection, Foundation reports later failures with the second code.
            let numbers: [URLError.Code] = [.unknown, .cannotConnectToHost]
        #else
            let numbers = [URLError.Code.unknown]
        #endif
        let early: [NetworkError.Code] = [
            .cannotConnect, .notConnected, .secureConnectionFailed, .untrustedCertificate,
        ]
        for number in numbers {
            let failure = URLError(number, userInfo: [NSLocalizedDescriptionKey: text])
            let error = NetworkError.ofSession(failure, phase: .awaitingResponse)
            #expect(error.code == code && error.isUnsent == early.contains(code), "\(number): \(error)")
        }
    }
}
