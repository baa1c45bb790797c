// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A response whose transfer is complete.
package struct Answer: Sendable {
    package let request: NetworkRequest
    package let head: ResponseHead
    package let response: HTTPURLResponse
    package let collector: AnyResponseCollector
}
