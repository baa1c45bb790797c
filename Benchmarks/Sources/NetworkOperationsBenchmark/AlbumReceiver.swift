// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A receiver that processes a response as an operation does: it stores the body, and creates the response object and
/// the result.
final class AlbumReceiver: NetworkReceiver {
    private let whenDone: @Sendable (Album?) -> Void
    // Sendable: the property is used only in the calls of one task, which are consecutive.
    private nonisolated(unsafe) var head: ResponseHead?
    private nonisolated(unsafe) var data = Data()

    init(whenDone: @escaping @Sendable (Album?) -> Void) {
        self.whenDone = whenDone
    }

    func task(_ task: any NetworkTask, didReceive head: ResponseHead) { self.head = head }

    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) { data.append(contentsOf: bytes) }

    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        guard error == nil, let response, response.statusCode == 200 else { return whenDone(nil) }
        whenDone(try? Album(data))
    }

    private var response: HTTPURLResponse? {
        guard let head else { return nil }
        var fields: [String: String] = [:]
        for field in head.headers { fields[field.name] = field.value }
        return HTTPURLResponse(
            url: head.url, statusCode: head.status, httpVersion: head.version.description, headerFields: fields)
    }
}
