// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

extension LoopbackServer {
    /// Gives these answers one after the other, and the last one to all requests that follow.
    ///
    /// ```swift
    /// let server = try LoopbackServer()
    /// server.route("GET", "/albums", .status(503), .json(#"[{"title": "Kind of Blue"}]"#))
    /// ```
    public func route(_ method: String, _ path: String, _ answers: LoopbackAnswer...) {
        let left = Locked(answers[...])
        route(method, path) { _ in
            // Without any there is nothing at that path.
            left.withLock { $0.count > 1 ? $0.popFirst() : $0.first } ?? .status(404)
        }
    }
}
