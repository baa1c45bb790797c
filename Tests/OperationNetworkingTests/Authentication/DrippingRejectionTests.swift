// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Rejections with an incomplete body", .timeLimit(.minutes(1)))
struct DrippingRejectionTests {
    @Test func `the stalled body of a rejection is awaited for two seconds, not counting suspensions`() async throws {
        let bench = try TokenBench()
        bench.serve { _ in LoopbackAnswer(.head(401, ["Content-Length": "10"]), .send("Hello"), .stallForever) }
        bench.serve("/rule") { _ in
            LoopbackAnswer(.head(200, ["Content-Length": "10", "X-Key": "expired"]), .send("Hello"), .stallForever)
        }
        let rule: (inout AuthenticationOptions) -> Void = { options in
            options.isRejected = { $0.status == 401 || $0.headers["X-Key"] == "expired" }
        }
        for (target, isDownload) in [("/", false), ("/rule", false), ("/", true), ("/rule", true)] {
            let authenticator = bench.authenticator(change: rule), asked = bench.asked.count
            let operation: any TextOperation =
                isDownload ? download(bench, target, authenticator) : bench.operation(authenticator, target)
            operation.start()
            _ = await bench.asked.events(atLeast: asked + 1)
            let end = bench.clock.now.advanced(by: .seconds(2))
            await until { bench.clock.nextDue == end && authenticator.credential != nil }
            #expect(operation.suspendExecution())
            bench.clock.advance(by: .seconds(10))
            #expect(operation.resumeExecution())
            #expect(operation.attemptCount == 1)
            bench.clock.advance(by: .milliseconds(1_999))
            #expect(operation.attemptCount == 1)
            bench.clock.advance(by: .milliseconds(1))
            #expect(try await operation.text == "Hello", "\(target)")
            #expect(operation.attemptCount == 2)
        }
        #expect(bench.clock.pendingCount == 0)
    }

    @Test func `canceling the task while the body of a rejection stalls cancels the operation`() async throws {
        let bench = try TokenBench()
        bench.serve { _ in LoopbackAnswer(.head(401, ["Content-Length": "10"]), .send("Hello"), .stallForever) }
        let authenticator = bench.authenticator()
        let operation = bench.operation(authenticator)
        operation.start()
        _ = await bench.asked.events(atLeast: 1)
        operation.networkTask?.cancel()
        #expect(await operation.finalOutcome.cancellationCause?.code == .networkTaskCancelled)
        #expect(bench.server.requests.count == 1)
    }

    private func download(
        _ bench: TokenBench, _ target: String, _ authenticator: Authenticator<String>
    ) -> NetworkDownloadOperation<String> {
        let download = NetworkDownloadOperation<String>(
            url: bench.server.url(target), urlSession: bench.bench.session
        ) { file, _ in
            try String(contentsOf: file, encoding: .utf8)
        }
        download.clock = bench.clock
        download.authenticate(by: authenticator)
        return download
    }
}

/// An operation that returns a text.
private protocol TextOperation: AnyNetworkOperation {
    var text: String { get async throws }
}

extension NetworkDataOperation: TextOperation where ResultType == String {
    fileprivate var text: String { get async throws { try await value } }
}

extension NetworkDownloadOperation: TextOperation where ResultType == String {
    fileprivate var text: String { get async throws { try await value } }
}
