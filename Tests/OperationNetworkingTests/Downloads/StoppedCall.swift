// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit

/// A file system that stops at one kind of call, once it is armed, until the test lets the call continue.
final class StoppedCall: Sendable {
    /// Opens when the call is about to be made.
    let reached = Gate()
    /// The test opens this gate to let the call continue.
    let passes = Gate()
    private let kind: FileSystemCall.Kind
    private let isArmed = Locked(false)
    private let later = Locked(0)

    init(at kind: FileSystemCall.Kind) {
        self.kind = kind
    }

    /// The number of calls of this kind after the stopped call.
    var laterCalls: Int { later.withLock { $0 } }

    func arm() {
        if !reached.isOpen { isArmed.withLock { $0 = true } }
    }

    var files: FileSystem {
        FileSystem { [self] call in
            guard call.kind == kind else { return .proceed }
            if passes.isOpen { later.withLock { $0 += 1 } }
            if isArmed.withLock({ exchange(&$0, with: false) }) {
                reached.open()
                passes.wait()
            }
            return .proceed
        }
    }
}
