// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

extension ManagedOperation {
    /// Sets the name, and returns the operation.
    func named(_ name: String) -> Self {
        self.name = name
        return self
    }

    /// Starts the operation on a new thread, which its body may block.
    func startOnThread() { Thread { self.start() }.start() }
}

extension GroupOperation {
    var engineIsRunningBody: Bool { groupEngine?.isRunningBody ?? false }
    var presentCount: Int { groupEngine?.presentCount ?? 0 }
    var externalWaitCount: Int { groupEngine?.externalWaitCount ?? 0 }
}

extension OperationFailure {
    var cause: CancellationCause? {
        if case .cancelled(let cause) = self { cause } else { nil }
    }
}
