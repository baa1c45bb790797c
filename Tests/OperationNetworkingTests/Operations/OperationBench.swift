// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationNetworking
import OperationTestKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a test of network operations works with: a server, a session over it, and a queue for callbacks.
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

    /// Makes an operation that gives the body as text.
    func text(_ target: String = "/") -> NetworkDataOperation<String> {
        watched(
            NetworkDataOperation(url: server.url(target), urlSession: session) { data, _ in
                String(decoding: data, as: UTF8.self)
            })
    }

    /// Sets the queue, and counts the operation and its attempts among those that must be gone in the end.
    func watched<Result, Value: Sendable, Kind: NetworkOperation<Result, Value>>(_ operation: Kind) -> Kind {
        operation.callbackQueue = callbacks
        census.track(operation.networkAttempts)
        return census.track(operation)
    }

    /// Waits until everything that was put on the callback queue was called.
    func settled() async {
        await withCheckedContinuation { continuation in callbacks.async { continuation.resume() } }
    }

    /// Sees that nothing is left: no operation, and no transfer.
    func checkNothingIsLeft(location: SourceLocation = #_sourceLocation) async throws {
        let census = census
        let count = try await TestThread.run { census.countAtRest() }
        #expect(count == 0, "alive: \(census.types)", sourceLocation: location)
    }
}

/// Writes down which handlers and calls of a delegate came.
final class HandlerLog: NetworkOperationDelegate {
    let lines = EventRecorder<String>()
    /// Opened by the last call that the delegate gets.
    let ended = Gate()

    func watch<Result, Value: Sendable>(_ operation: NetworkOperation<Result, Value>) {
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

/// The error of an operation that is run and must fail.
func failure<Result, Value: Sendable>(
    of operation: NetworkOperation<Result, Value>, location: SourceLocation = #_sourceLocation
) async -> NetworkError? {
    do {
        let value = try await operation.run()
        Issue.record("no failure but \(value)", sourceLocation: location)
    } catch {
        // Waiters learn of the outcome first; handlers are put on their queue before the operation has ended.
        await operation.ended()
        if case .failed(let error) = error { return error }
        Issue.record("no failure but \(error)", sourceLocation: location)
    }
    return nil
}
