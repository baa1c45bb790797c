// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension LoopbackServer {
    /// Starts an operation, and waits until the server received the head of a request.
    func isReached(by operation: ManagedOperation) async {
        operation.start()
        _ = await heads(atLeast: 1)
    }
}

extension LoopbackAnswer {
    /// A response that stops within its body.
    static func stalling(after text: String, of length: Int = 10) -> LoopbackAnswer {
        LoopbackAnswer(.head(200, ["Content-Length": "\(length)"]), .send(text), .stallForever)
    }

    /// A response with the test pattern, which stops after `count` bytes until the gate is open.
    static func pattern(_ length: Int, stallingAfter count: Int, until gate: Gate) -> LoopbackAnswer {
        LoopbackAnswer(
            .head(200, ["Content-Length": "\(length)"]), .send(TestPattern.bytes(count: count)), .stall(until: gate),
            .send(TestPattern.bytes(from: count, count: length - count)))
    }
}

/// A server, a session and a callback queue for tests of network operations.
struct OperationBench: Sendable {
    let server: LoopbackServer
    let session: ExchangeSession
    let closeSession: @Sendable () -> Void
    let callbacks = DispatchQueue(label: "OperationBench.callbacks")
    let census = LiveObjects()

    init(_ options: LoopbackServer.Options = .init()) throws {
        server = try LoopbackServer(options)
        let (transport, close) = SessionKind.allCases[0].makeSession()
        session = ExchangeSession(over: transport)
        closeSession = close
    }

    /// Creates a bench whose server answers GET requests for the path `/`.
    init(_ answer: @escaping @Sendable (LoopbackRequest) -> LoopbackAnswer) throws {
        try self.init()
        server.route("GET", "/", answer)
    }

    /// Creates an operation that returns the body as text.
    func text(_ target: String = "/") -> NetworkDataOperation<String> {
        watched(
            NetworkDataOperation(url: server.url(target), urlSession: session) { data, _ in
                String(decoding: data, as: UTF8.self)
            })
    }

    /// Creates an operation that sends a body and returns the body of the response as text.
    func upload(
        _ target: String = "/", method: String = "POST", body: RequestBody
    ) -> NetworkUploadOperation<String> {
        watched(
            NetworkUploadOperation(url: server.url(target), method: method, body: body, urlSession: session) {
                data, _ in String(decoding: data, as: UTF8.self)
            })
    }

    /// Sets the callback queue, and tracks the operation and its attempts, which must be released at the end.
    func watched<Result, Value: Sendable, Kind: NetworkOperation<Result, Value>>(_ operation: Kind) -> Kind {
        operation.callbackQueue = callbacks
        census.track(operation.networkAttempts)
        return census.track(operation)
    }

    /// Waits until all earlier closures on the callback queue were called.
    func settled() async {
        await withCheckedContinuation { continuation in callbacks.async { continuation.resume() } }
    }

    /// Checks that no operation and no attempts are left.
    func checkNothingIsLeft(location: SourceLocation = #_sourceLocation) async throws {
        let census = census
        let count = try await TestThread.run { census.countAtRest() }
        #expect(count == 0, "alive: \(census.types)", sourceLocation: location)
    }
}

/// Records the calls of handlers and of a delegate.
final class HandlerLog: NetworkOperationDelegate {
    let lines = EventRecorder<String>()
    /// Opens with the last call of the delegate.
    let ended = Gate()

    /// Sets all handlers, and the delegate unless the test sets it later.
    func watch<Result, Value: Sendable>(_ operation: NetworkOperation<Result, Value>, asDelegate: Bool = true) {
        if asDelegate { operation.delegate = self }
        operation.successHandler = { [lines] _ in lines.record("success") }
        operation.failureHandler = { [lines] in lines.record("failure \($0.code)") }
        operation.cancellationHandler = { [lines] in lines.record("cancelled \($0.code)") }
    }

    func networkOperation(_ operation: any AnyNetworkOperation, didFinishWith error: NetworkError?) {
        lines.record("delegate \(error.map { "\($0.code)" } ?? "success") \(operation.response?.statusCode ?? 0)")
    }

    func networkOperation(_ operation: any AnyNetworkOperation, wasCancelledBecause cause: CancellationCause) {
        lines.record("delegate cancelled")
        ended.open()
    }

    func networkOperation(_ operation: any AnyNetworkOperation, didReceive progress: TransferProgress) {
        lines.record("delegate received \(progress.completedBytes)")
    }
}

/// Runs an operation that must fail, and returns its error.
func failure<Result, Value: Sendable>(
    of operation: NetworkOperation<Result, Value>, location: SourceLocation = #_sourceLocation
) async -> NetworkError? {
    do {
        let value = try await operation.run()
        Issue.record("The operation returned \(value) instead of failing.", sourceLocation: location)
    } catch {
        // Waiters get the outcome first. Handlers are scheduled before the operation has ended.
        await operation.ended()
        if case .failed(let error) = error { return error }
        Issue.record("The operation did not fail, but ended with \(error).", sourceLocation: location)
    }
    return nil
}
