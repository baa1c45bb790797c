// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Whether a body that can be sent once was asked for: until then no attempt has used it up.
package final class BodyUse: Sendable {
    private let state = Locked(false)

    package init() {}

    var isNoted: Bool { state.withLock { $0 } }

    func note() { state.withLock { $0 = true } }
}
