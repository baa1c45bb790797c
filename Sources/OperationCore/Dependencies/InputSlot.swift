// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Holds the result of one dependency until the operation that asked for it begins.
final class InputSlot<Input: Sendable>: Sendable {
    private let value = Locked<Input?>(nil)

    func put(_ new: Input) {
        var new: Input? = new
        value.withLock { swap(&$0, &new) }
    }

    func take() -> Input? { value.withLock { exchange(&$0, with: nil) } }

    /// Takes the result of the upstream operation, or says what becomes of the downstream one without it.
    func judge<UpstreamError: Error, ErrorType: Error>(
        _ type: UpstreamError.Type, otherwise rule: MissingInputRule<Input, ErrorType>
    ) -> DependencyEdge.Judge {
        { [self] upstream in
            if let result = (upstream as? TypedOperation<Input, UpstreamError>)?.outcome?.result {
                put(result)
                return .proceed
            }
            guard let reason = UnsuccessfulDependency(upstream) else { return .proceed }
            switch rule.choice {
            case .cancel: return .cancel(reason.cause)
            case .fail(let makeError): return reason.failing(with: makeError)
            case .use(let value):
                put(value)
                return .proceed
            }
        }
    }
}
