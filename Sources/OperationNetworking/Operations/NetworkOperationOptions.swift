// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a network operation is set up with, and what its task gave.
///
/// Nothing in it depends on the types of the operation: each access would look up their description (decision 0005).
/// Closures that do depend on them are in boxes, which are opened where there are any.
struct NetworkOperationOptions: Sendable {
    /// A closure in a box.
    final class Kept<Closure: Sendable>: Sendable {
        let closure: Closure

        init(_ closure: Closure) {
            self.closure = closure
        }
    }

    /// What a task gave, in a box.
    final class Taken<Result>: @unchecked Sendable {
        // Sendable: it is handed to whoever asks for it, and never changed.
        let result: Result

        init(_ result: Result) {
            self.result = result
        }
    }

    /// What the requests of a service have in common.
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

        /// The request with what it does not say itself.
        func completed(_ request: NetworkRequest) throws(NetworkError) -> NetworkRequest {
            // A header may be a credential, which no other origin gets.
            let request = request.origin == origin ? try request.completed(by: headers) : request
            return request.options == .standard ? try request.with(options) : request
        }

        /// The request of a hook, without the service's headers if the hook sends it to another origin.
        func checked(_ changed: NetworkRequest, madeOf request: NetworkRequest) -> NetworkRequest {
            guard request.origin == origin, changed.origin != origin else { return changed }
            let kept = changed.headers.filter { field in
                // A request has values without blanks around them, and Foundation's joins those of one name.
                let own = headers.values(field.name).map(\.trimmedBlanks)
                return !own.contains(field.value) && field.value != own.joined(separator: ",")
            }
            return NetworkRequest(changed, checkedHeaders: HeaderFields(Array(kept)))
        }
    }

    var draft: RequestDraft
    /// The service to which the operation belongs; nil if it was given none.
    var service: Service?
    var rules = ResponseRules()
    /// Each of them holds a rule for what the operation's task gave.
    var validators: [any AnyObject & Sendable] = []
    /// Holds what makes the result of an answer without a body.
    var emptyResult: (any AnyObject & Sendable)?
    /// Holds what the task of the last attempt gave, when it was complete.
    var taken: (any AnyObject & Sendable)?
    /// The request of the attempt, in the form in which a hook returned it and as it was checked, until its task is made.
    var prepared: Prepared?

    typealias Prepared = (foundation: URLRequest, request: NetworkRequest)
}

extension CancellationCause.Code {
    /// The task of a network operation was cancelled, and not by the operation.
    public static let networkTaskCancelled = Self("networkTaskCancelled")
}

extension CancellationCause {
    /// The task of the operation was cancelled by somebody else, or a hook of the operation threw `CancellationError`.
    public static let networkTaskCancelled = CancellationCause(
        code: .networkTaskCancelled,
        message: "The operation's network task was cancelled by somebody else than the operation, or from within.")
}
