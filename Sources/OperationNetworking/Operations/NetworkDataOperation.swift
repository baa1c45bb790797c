// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An operation that keeps the response in memory and creates its result from the response.
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
/// A response with a status other than 200 to 299 makes the operation fail. To change this, set its
/// ``NetworkOperation/responseRules``.
open class NetworkDataOperation<ResultType: Sendable>: NetworkOperation<Data, ResultType>, @unchecked Sendable {
    // Sendable: it adds no state.

    package override var isPlain: Bool { type(of: self) == NetworkDataOperation<ResultType>.self }

    package override var isBrief: Bool { isPlain && operationSession.startsTasksBriefly }

    /// Returns a collector that keeps the body in memory.
    open override func makeCollector(for head: ResponseHead) throws -> ResponseCollector<Data> {
        DataCollector(limit: responseRules.maximumBytesInMemory, expected: head.expectedLength)
    }
}
