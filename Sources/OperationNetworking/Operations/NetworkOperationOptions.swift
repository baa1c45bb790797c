// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The configuration of a network operation, and the result of its task.
///
/// The struct does not depend on the type parameters of the operation, because each access would look up their metadata
/// (decision 0005). A value that depends on these parameters is stored in a ``Box``.
struct NetworkOperationOptions: Sendable {
    /// The settings that the requests of a service share.
    final class Service: Sendable {
        let origin: RequestOrigin?
        let headers: HeaderFields
        let session: any NetworkSession
        let options: TransferOptions
        let makeDecoder: @Sendable () -> JSONDecoder

        init(
            origin: RequestOrigin?, headers: HeaderFields, session: any NetworkSession, options: TransferOptions,
            makeDecoder: @escaping @Sendable () -> JSONDecoder
        ) {
            (self.origin, self.headers, self.session) = (origin, headers, session)
            (self.options, self.makeDecoder) = (options, makeDecoder)
        }

        /// Returns the request with the headers and options of the service that the request does not have itself.
        func completed(_ request: NetworkRequest) throws(NetworkError) -> NetworkRequest {
            // A header may contain a credential, which must not be sent to another origin.
            let request = request.origin == origin ? try request.completed(by: headers) : request
            return request.options == .standard ? try request.with(options) : request
        }

        /// Returns the request of a hook, without the service's headers if the hook sends it to another origin.
        func checked(_ changed: NetworkRequest, madeOf request: NetworkRequest) -> NetworkRequest {
            guard request.origin == origin, changed.origin != origin else { return changed }
            let kept = changed.headers.filter { field in
                // The values of a request are trimmed, and Foundation joins the values of one name.
                let own = headers.values(field.name).map(\.trimmedBlanks)
                return !own.contains(field.value) && field.value != own.joined(separator: ",")
            }
            return NetworkRequest(changed, checkedHeaders: HeaderFields(Array(kept)))
        }
    }

    var draft: RequestDraft
    /// The service to which the operation belongs, if there is one.
    var service: Service?
    /// The rules for responses, or nil for the default rules.
    @Boxed var otherRules: ResponseRules?
    /// Boxes with a rule for the result of the task.
    var validators: [any AnyObject & Sendable] = []
    /// A box with the closure that creates the result for a response without a body.
    var emptyResult: (any AnyObject & Sendable)?
    /// A box with the complete result of the last attempt's task.
    var taken: (any AnyObject & Sendable)?
    /// The request of the attempt, as a hook returned it and as it was checked, until the task is created.
    @Boxed var prepared: Prepared?

    typealias Prepared = (foundation: URLRequest, request: NetworkRequest)

    var rules: ResponseRules { otherRules ?? ResponseRules() }

    /// Removes the closure that decodes errors, and returns the old rules to be released without holding the lock.
    mutating func releaseErrorDecoder() -> Boxed<ResponseRules>? {
        guard var rules = otherRules, rules.decodeError != nil else { return nil }
        rules.decodeError = nil
        return exchange(&$otherRules, with: Boxed(wrappedValue: rules))
    }
}

extension CancellationCause.Code {
    /// A code that indicates that the program canceled the operation's network task instead of the operation, or that a
    /// hook threw a `CancellationError`.
    public static let networkTaskCancelled = Self("networkTaskCancelled")
}

extension CancellationCause {
    /// A cause that indicates that the program canceled the operation's network task, or that a hook threw a
    /// `CancellationError`.
    package static let networkTaskCancelled = CancellationCause(
        code: .networkTaskCancelled,
        message: "The operation was not canceled, but its network task was, or a hook threw a CancellationError.")
}
