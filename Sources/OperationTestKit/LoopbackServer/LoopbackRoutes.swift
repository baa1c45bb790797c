// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Which requests are answered by which closure.
struct LoopbackRoutes: Sendable {
    typealias Handler = @Sendable (LoopbackRequest) -> LoopbackAnswer

    struct Route: Sendable {
        let method: String?
        let path: String
        let isPrefix: Bool
        let answersEarly: Bool
        let handler: Handler

        func matches(_ method: String, _ path: String) -> Bool {
            if let wanted = self.method, wanted != method, !(wanted == "GET" && method == "HEAD") { return false }
            return isPrefix ? path.hasPrefix(self.path) : path == self.path
        }
    }

    private var routes: [Route] = []
    /// What is done when a connection was taken, before anything was read from it.
    var greeting: (@Sendable (Int) -> LoopbackAnswer?)?

    /// Adds a route; a later one for the same comes first.
    mutating func add(_ method: String?, _ path: String, early: Bool, _ handler: @escaping Handler) {
        let isPrefix = path.hasSuffix("*")
        routes.append(
            Route(
                method: method, path: isPrefix ? String(path.dropLast()) : path, isPrefix: isPrefix,
                answersEarly: early, handler: handler))
    }

    func route(_ method: String, _ path: String) -> Route? {
        routes.last { $0.matches(method, path) }
    }
}
