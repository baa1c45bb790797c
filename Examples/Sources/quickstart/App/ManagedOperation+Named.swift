// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

extension ManagedOperation {
    /// The same operation, under a name by which logs and pictures tell it from others.
    func named(_ name: String) -> Self {
        self.name = name
        return self
    }
}
