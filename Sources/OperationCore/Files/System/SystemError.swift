// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The number with which a system call refused.
package struct SystemError: Error, Hashable, Sendable {
    package let number: Int32

    package init(_ number: Int32) {
        self.number = number
    }

    /// Whether the file system lacks what was asked for, so that another way to it may be tried.
    var meansUnsupported: Bool { [EINVAL, ENOSYS, ENOTSUP, EOPNOTSUPP].contains(number) }

    /// Whether an attribute cannot be set because the file system, or its owner, has no such thing.
    var meansNoSuchAttribute: Bool { meansUnsupported || number == EPERM }

    /// Whether there is nothing to bring to the disk: a device, a pipe, a file system that cannot be written to.
    var meansNothingToSynchronize: Bool { meansUnsupported || number == EROFS }
}

extension Result where Failure == SystemError {
    /// The value; otherwise the failure with the place at which it happened.
    func get(at place: @autoclosure () -> FilePlace) throws(FileInterruption) -> Success {
        switch self {
        case .success(let value): return value
        case .failure(let error): throw .failed(place().error(for: error))
        }
    }

    /// Success without a value, if the failure is one that does not matter here.
    func ignoring(_ isHarmless: (SystemError) -> Bool) -> Result<Void, SystemError> {
        if case .failure(let error) = self, !isHarmless(error) { return .failure(error) }
        return .success(())
    }
}
