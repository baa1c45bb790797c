// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationFiles
import Testing

/// Makes one system call fail, or all calls of some kinds from a certain call on.
final class FaultPlan: Sendable {
    private struct State {
        var count = 0
        var failed: FileSystemCall.Kind?
    }

    private let state = Locked(State())
    private let number: Int
    private let errorNumber: Int32
    private let lasting: Set<FileSystemCall.Kind>
    private let isOtherDevice: Bool

    /// - Parameters:
    ///   - number: The number of the call that fails, counted from one.
    ///   - errorNumber: The error number of the failure.
    ///   - lasting: The kinds of call that fail from then on. If there are any, only these calls are counted.
    ///   - isOtherDevice: Whether renaming anything but a temporary file fails as if it crossed file systems.
    init(
        failing number: Int, with errorNumber: Int32, lasting: Set<FileSystemCall.Kind> = [],
        isOtherDevice: Bool = false
    ) {
        (self.number, self.errorNumber) = (number, errorNumber)
        (self.lasting, self.isOtherDevice) = (lasting, isOtherDevice)
    }

    /// The kind of the call that failed, or `nil` if no call failed.
    var failed: FileSystemCall.Kind? { state.withLock { $0.failed } }

    var name: String { failed?.rawValue ?? "nothing" }

    var interceptor: FileSystem.Interceptor {
        { [self] call in
            let isRename = call.kind == .rename || call.kind == .renameExclusively
            if isOtherDevice, isRename, call.name?.description.hasPrefix(".operationkit-") == false {
                return .fail(EXDEV)
            }
            return state.withLock { state in
                guard lasting.isEmpty || lasting.contains(call.kind) else { return .proceed }
                state.count += 1
                let isDue = lasting.isEmpty ? state.count == number : state.count >= number
                guard isDue else { return .proceed }
                state.failed = call.kind
                return .fail(errorNumber)
            }
        }
    }
}
