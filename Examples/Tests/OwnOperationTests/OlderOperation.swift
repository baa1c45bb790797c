// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Custom operations in the older form, with Foundation's session and task.
///
/// The completion handler ends the operation.
class OlderOperation<TaskResult, ResultType: Sendable>: NetworkOperation<TaskResult, ResultType>,
    @unchecked Sendable
{
    // Sendable: the class has no state.

    override func prepareRequest(_ request: URLRequest) -> URLRequest {
        var request = request
        request.setValue("older", forHTTPHeaderField: "X-Form")
        return request
    }

    func end(_ result: TaskResult?, _ response: URLResponse?, _ error: (any Error)?) {
        if let error { return finish(withError: NetworkError(error)) }
        guard let result, let response = response as? HTTPURLResponse else { return cancel() }
        do {
            finish(withResult: try evaluate(result: result, response: response))
        } catch {
            finish(withError: NetworkError(error, phase: .evaluating))
        }
    }
}

final class OlderDataOperation<ResultType: Sendable>: OlderOperation<Data, ResultType>, @unchecked Sendable {
    override func createTask(with request: URLRequest, using session: URLSession) -> URLSessionTask {
        session.dataTask(with: request) { [self] in end($0, $1, $2) }
    }
}

final class OlderDownloadOperation<ResultType: Sendable>: OlderOperation<URL, ResultType>, @unchecked Sendable {
    override func createTask(with request: URLRequest, using session: URLSession) -> URLSessionTask {
        session.downloadTask(with: request) { [self] in end($0, $1, $2) }
    }
}
