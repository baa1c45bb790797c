// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// An error that describes why an operation cannot depend on another operation.
public struct DependencyError: Error, Sendable, Equatable, CustomStringConvertible, LocalizedError {
    /// The code that identifies the error.
    public let code: Code
    /// A message that describes the dependency, the problem and a possible solution.
    public let message: String
    /// The names of the operations that would wait for each other in a cycle, or an empty array if there is no cycle.
    ///
    /// In a cycle, the array begins and ends with the same name.
    public let path: [String]

    /// The text of the error, which is the same as ``message``.
    public var description: String { message }
    /// The text of the error, which is the same as ``message``.
    public var errorDescription: String? { message }

    /// A code that identifies a dependency error.
    ///
    /// Later versions may add codes. If you compare codes, also handle unknown codes.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the code as a string.
        public let description: String

        private init(name: String) { description = name }

        /// The dependency would make operations wait for each other in a cycle.
        public static let cycle = Code(name: "cycle")
        /// The operation that would depend on another operation was already started, so the dependency was not added.
        public static let alreadyStarted = Code(name: "alreadyStarted")
    }

    static func cycle(_ path: [String]) -> DependencyError {
        let message =
            path.count == 2
            ? "\(path[0]) cannot depend on itself."
            : "This dependency would close a cycle in which each operation waits for the next one: "
                + "\(path.joined(separator: " → ")). Remove one of these dependencies."
        return DependencyError(code: .cycle, message: message, path: path)
    }

    static func alreadyStarted(_ name: String, dependency: String) -> DependencyError {
        DependencyError(
            code: .alreadyStarted,
            message: "\(name) was already started, so it cannot wait for \(dependency). "
                + "Add dependencies before you start an operation or add it to a queue.",
            path: [])
    }
}
