// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An operation that sends a request, keeps the response body in memory and creates its result from the response.
///
/// ```swift
/// func scoreOperation(at url: URL) -> NetworkDataOperation<[String: Int]> {
///     let operation = NetworkDataOperation(url: url) { data, response in
///         try JSONDecoder().decode([String: Int].self, from: data)
///     }
///     operation.successHandler = { scores in print(scores) }
///     operation.failureHandler = { error in print(error.message) }
///     return operation
/// }
/// ```
///
/// If the status code of the response is not between 200 and 299, the operation fails. To accept other status codes,
/// set ``NetworkOperation/responseRules``.
///
/// Guide: `Docs/Guides/NetworkOperations.md`
open class NetworkDataOperation<ResultType: Sendable>: NetworkOperation<Data, ResultType>, @unchecked Sendable {
    // Sendable: it adds no state.

    package override var isOfOwnClass: Bool { type(of: self) == NetworkDataOperation<ResultType>.self }

    package override var isBrief: Bool { hasNoOverrides && operationSession.startsTasksBriefly }

    /// Returns a collector that keeps the response body in memory.
    ///
    /// - Parameter head: The status and the headers of the response.
    /// - Throws: Any error that an override throws. The attempt then fails.
    open override func makeCollector(for head: ResponseHead) throws -> ResponseCollector<Data> {
        DataCollector(limit: responseRules.maximumBytesInMemory, expected: head.expectedLength)
    }
}
