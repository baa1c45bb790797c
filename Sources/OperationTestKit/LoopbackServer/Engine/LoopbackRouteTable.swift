// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// The routes of a server, which tests change while its thread reads them.
final class LoopbackRouteTable: Sendable {
    private let routes = Locked(LoopbackRoutes())

    func change(_ change: (inout LoopbackRoutes) -> Void) {
        routes.withLock { change(&$0) }
    }

    var current: LoopbackRoutes { routes.withLock { $0 } }
}
