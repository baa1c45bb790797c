// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// An error that describes why a queue, a group or a dependency cannot be set up as your code requested.
///
/// For example, an operation cannot be added to a queue or to a group, or cannot depend on another operation.
public struct OperationSetupError: Error, Sendable, Equatable, CustomStringConvertible, LocalizedError {
    /// The code that identifies the error.
    public let code: Code
    /// A message that describes the error, its cause and a possible solution.
    public let message: String
    /// The names of the operations that would wait for each other in a cycle of dependencies, or an empty array if
    /// there is no such cycle.
    ///
    /// In a cycle, the array begins and ends with the same name.
    public let path: [String]

    /// The message and the code, for a log line.
    public var description: String { "\(message) [\(code)]" }
    /// The message of the error, which you can show to a user.
    public var errorDescription: String? { message }

    init(_ code: Code, _ message: String, path: [String] = []) {
        self.code = code
        self.message = message
        self.path = path
    }

    /// A code that identifies an error in the setup of operations.
    ///
    /// Future versions may add codes, so always handle unknown codes. Errors that you fix in your code have codes
    /// without a public name.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the code, which is suitable as a metric label.
        public let description: String

        private init(_ name: String) { description = name }

        /// The operation is already in a queue or a group.
        public static let alreadyAdded = Code("alreadyAdded")
        /// The operation was already started.
        public static let alreadyStarted = Code("alreadyStarted")
        /// The operation has already ended.
        public static let alreadyFinished = Code("alreadyFinished")
        /// The queue has reached its capacity.
        public static let full = Code("full")
        /// The task that waited for space in the queue was canceled.
        public static let cancelled = Code("cancelled")
        /// The queue was shut down, or the group has ended.
        public static let closed = Code("closed")
        /// A setting, such as the width, has a value that is not valid.
        package static let badSetting = Code("badSetting")
        /// The caller cannot wait on this thread.
        ///
        /// For example, a body cannot wait until the queue that runs the body is empty, and the async body of a group
        /// cannot call `startAndWait()`.
        package static let cannotWait = Code("cannotWait")
        /// No queue with the given name is defined, or a queue with this name is already defined.
        package static let name = Code("name")
        /// The queue has no closure that can create the failed operation again.
        package static let notRemakable = Code("notRemakable")
        /// The failure is not in the queue's list of failures.
        public static let notListed = Code("notListed")
        /// Operations would wait for each other in a cycle.
        public static let cycle = Code("cycle")
        /// An operation that you passed to `addChain` cannot depend on the operation before it.
        package static let chain = Code("chain")
    }

    static func cycle(_ path: [String]) -> Self {
        let message =
            path.count == 2
            ? "\(path[0]) cannot depend on itself."
            : "This dependency would close a cycle in which each operation waits for the next one: "
                + "\(path.joined(separator: " → ")). Remove one of these dependencies."
        return Self(.cycle, message, path: path)
    }

    static func alreadyStarted(_ name: String, dependency: String) -> Self {
        Self(
            .alreadyStarted,
            "\(name) was already started, so it cannot wait for \(dependency). "
                + "Add dependencies before you start an operation or add it to a queue.")
    }
}
