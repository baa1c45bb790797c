// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// An operation that fails, and that calls a closure once when its name is read.
///
/// A refusal and the rule of an edge read the name.
final class NameCaller: AsyncOperation<Int, Flaw>, @unchecked Sendable {
    // Sendable: its state is behind a lock.

    let onName = Locked<(@Sendable () -> Void)?>(nil)

    override var name: String? {
        get {
            onName.withLock { exchange(&$0, with: nil) }?()
            return "caller"
        }
        set {}
    }

    override func main() { finish(withError: .first) }
}
