// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore

extension ManagedOperation {
    /// Sets the name of the operation for logs and pictures, and returns the operation.
    func named(_ name: String) -> Self {
        self.name = name
        return self
    }
}
