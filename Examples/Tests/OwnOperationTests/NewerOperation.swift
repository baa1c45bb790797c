// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Custom operations in the current form, for any kind of task result and any session.
final class NewerOperation<TaskResult, ResultType: Sendable>: NetworkOperation<TaskResult, ResultType>,
    @unchecked Sendable
{
    // Sendable: the class has no state.

    override func prepareRequest(_ request: URLRequest) -> URLRequest {
        var request = request
        request.setValue("newer", forHTTPHeaderField: "X-Form")
        return request
    }

    override func createTask(
        with request: NetworkRequest, using session: any NetworkSession
    ) throws -> any NetworkTask {
        var headers = request.headers
        headers["X-Task"] = "own"
        return session.makeTask(with: try NetworkRequest(request.method, url: request.url, headers: headers))
    }

    override func evaluate(result: TaskResult, response: HTTPURLResponse) throws -> ResultType {
        guard response.statusCode == 200 else { throw URLError(.badServerResponse) }
        return try super.evaluate(result: result, response: response)
    }
}

/// A collector whose result is neither data nor a file.
final class LineCounter: ResponseCollector<Int>, @unchecked Sendable {
    // Sendable: the calls for one response never overlap.
    private var count = 0

    override func receive(_ bytes: UnsafeRawBufferPointer, flow: any NetworkTask) {
        count += bytes.count { $0 == UInt8(ascii: "\n") }
    }

    override func finish() -> Int { count }
}

final class LineOperation<ResultType: Sendable>: NetworkOperation<Int, ResultType>, @unchecked Sendable {
    override func makeCollector(for head: ResponseHead) -> ResponseCollector<Int> { LineCounter() }
}
