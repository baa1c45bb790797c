// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Temporary and permanent refresh failures")
struct AuthenticationOptionsTests {
    private func error(_ code: NetworkError.Code, status: Int? = nil, cause: (any Error)? = nil) -> NetworkError {
        var error = NetworkError(code: code, phase: .receiving, message: "")
        (error.status, error.cause) = (status, cause)
        return error
    }

    private func mayPass(_ error: any Error) -> Bool { AuthenticationOptions.standard.mayPass(error) }

    @Test func `network errors, full queues, cancellations and server failures are temporary`() throws {
        let queue = QueueManager("full")
        queue.isSuspended = true
        queue.capacity = 1
        try queue.add(ClosureOperation<Void, Never> {})
        let refusal = #expect(throws: OperationSetupError.self) { try queue.add(ClosureOperation<Void, Never> {}) }
        let errors: [any Error] = [
            URLError(.notConnectedToInternet), URLError(.timedOut), CancellationError(), try #require(refusal),
            OperationFailure<NetworkError>.cancelled(.requested),
            OperationFailure<Refusal>.cancelled(.requested),
            OperationFailure<NetworkError>.failed(error(.connectionLost)), error(.cancelled), error(.offline),
            error(.offlineTooLong), error(.offlineTooOften), error(.tooManyOffline), error(.timedOut),
            error(.unacceptableStatus, status: 503), error(.refreshTimedOut), error(.tooManyRefreshes),
            error(.refreshFailed, cause: URLError(.notConnectedToInternet)),
            error(.preparationFailed, cause: error(.notConnected)),
        ]
        for error in errors { #expect(mayPass(error), "\(error)") }
    }

    @Test func `rejections by the service and unknown errors are permanent`() {
        let errors: [any Error] = [
            error(.unacceptableStatus, status: 400), error(.unacceptableStatus, status: 401), Refusal(),
            OperationFailure<NetworkError>.failed(error(.unacceptableStatus, status: 400)),
            OperationFailure<Refusal>.failed(Refusal()), error(.signedOut), error(.refreshFailed, cause: Refusal()),
            error(.preparationFailed), URLError(.serverCertificateUntrusted),
        ]
        for error in errors { #expect(!mayPass(error), "\(error)") }
    }
}
