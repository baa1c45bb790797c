// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Why a file operation failed: what was being done, with which file, and what the system said.
///
/// ```swift
/// let read = FileReadOperation(URL(fileURLWithPath: "/etc/nothing-of-this-name"))
/// do {
///     print(try await read.run().count)
/// } catch .failed(let error) where error.code == .notFound {
///     print("There is no \(error.path).")
/// } catch {
///     print(error)
/// }
/// ```
public struct FileOperationError: Error, Sendable, Equatable {
    /// The kind of the failure.
    public let code: Code
    /// What was being done.
    public let action: Action
    /// The path at which it failed.
    ///
    /// Inside a directory that is copied or removed it is that of the very file.
    public let path: String
    /// The other end of a copy or a move: the destination if ``path`` is the source, and the other way round.
    public let otherPath: String?
    /// The number with which the system refused (`errno`); zero if it was not the system who did.
    public let systemErrorNumber: Int32

    /// Makes an error, for tests of your own code.
    public init(
        code: Code, action: Action, path: String, otherPath: String? = nil, systemErrorNumber: Int32 = 0
    ) {
        self.code = code
        self.action = action
        self.path = path
        self.otherPath = otherPath
        self.systemErrorNumber = systemErrorNumber
    }

    /// What failed, at which path, why, and what to do about it.
    public var message: String {
        let end = otherPath.map { "failed at \(path) (its other end is \($0))" } ?? "\(path) failed"
        return "\(action) \(end): \(code.explanation ?? systemExplanation)"
    }

    private var systemExplanation: String {
        guard systemErrorNumber != 0 else { return "\(code)." }
        let words = NSError(domain: NSPOSIXErrorDomain, code: Int(systemErrorNumber)).localizedDescription
        return "the system reported error \(systemErrorNumber) (\(words))."
    }
}

extension FileOperationError: CustomStringConvertible {
    /// One line for a log: the kind and the sentence.
    public var description: String { "[\(code)] \(message)" }
}

extension FileOperationError: LocalizedError {
    /// The sentence to show to a person.
    public var errorDescription: String? { message }
}

extension FileOperationError: CustomNSError {
    /// The domain of these errors as `NSError`.
    public static var errorDomain: String { "OperationKit.FileOperationError" }

    /// The system's number, or zero.
    public var errorCode: Int { Int(systemErrorNumber) }

    /// The sentence, the path, and the system's own error.
    public var errorUserInfo: [String: Any] {
        var info: [String: Any] = [NSLocalizedDescriptionKey: message, NSFilePathErrorKey: path]
        if systemErrorNumber != 0 {
            info[NSUnderlyingErrorKey] = NSError(domain: NSPOSIXErrorDomain, code: Int(systemErrorNumber))
        }
        return info
    }
}
