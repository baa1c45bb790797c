// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

extension Result where Success == Void, Failure == SystemError {
    /// Success, if the failure is that there is nothing.
    func ignoringAbsence() -> Self {
        if case .failure(SystemError(ENOENT)) = self { return .success(()) }
        return self
    }
}
