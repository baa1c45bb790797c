// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What is being done, and with which file: what an error needs to know beside the system's number.
struct FilePlace {
    var action: FileOperationError.Action
    var path: String
    /// The other end of a copy or a move.
    var otherPath: String?

    init(_ action: FileOperationError.Action, _ path: String, otherPath: String? = nil) {
        self.action = action
        self.path = path
        self.otherPath = otherPath
    }

    func error(for systemError: SystemError, code: FileOperationError.Code? = nil) -> FileOperationError {
        FileOperationError(
            code: code ?? FileOperationError.Code(systemErrorNumber: systemError.number),
            action: action, path: path, otherPath: otherPath, systemErrorNumber: systemError.number)
    }

    func error(_ code: FileOperationError.Code) -> FileOperationError {
        FileOperationError(code: code, action: action, path: path, otherPath: otherPath)
    }
}
