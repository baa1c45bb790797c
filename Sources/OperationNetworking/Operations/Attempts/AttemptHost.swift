// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The side of a network operation that its attempts call: hooks and types.
package protocol AttemptHost: AnyNetworkOperation {
    /// Makes the request, by the synchronous hooks.
    func requestOfAttempt() throws -> NetworkRequest
    /// Whether there is an asynchronous hook to be called.
    var adaptsRequests: Bool { get }
    func adaptRequest(_ request: NetworkRequest) async throws -> NetworkRequest
    /// The session of the operation if it is an `ExchangeSession`, which may limit the rate of requests.
    var exchangeOfAttempts: ExchangeSession? { get }
    /// Makes a task that tells the receiver, or that the user's own code follows.
    func makeTask(_ request: NetworkRequest, _ receiver: AttemptReceiver) throws -> any NetworkTask
    /// Makes what takes in the body of a response.
    func makeCollector(for head: ResponseHead, of request: NetworkRequest) throws -> AnyResponseCollector
    /// Whether such a response is a success, as far as its head says.
    func accepts(_ head: ResponseHead) -> Bool
    /// How many bytes of the body an error carries.
    var errorBodyBytes: Int { get }
    /// Makes the result, and returns what gives it to the operation.
    func evaluate(_ answer: Answer) throws -> @Sendable () -> Void
    /// What the last task gave, as it came.
    var anyTaskResult: Any? { get }
    /// The outcome, with its result as a value of any type.
    var outcomeOfAnyType: OperationOutcome<any Sendable, NetworkError>? { get }
    /// Notifies the delegates of the end, each on its queue, if the operation has ended and they were not notified before.
    func tellDelegateOfEnd()
    func tellOfEnd(_ delegate: any NetworkOperationDelegate)
    /// Ends the operation with an error.
    func fail(with error: NetworkError)
}
