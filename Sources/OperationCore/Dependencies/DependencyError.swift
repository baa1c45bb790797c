// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Why an operation cannot wait for another.
public struct DependencyError: Error, Sendable, Equatable, CustomStringConvertible, LocalizedError {
    /// The kind of the refusal.
    public let code: Code
    /// What was refused and what to do, as a sentence.
    public let message: String
    /// The names along the cycle, first and last the same; empty where there is none.
    public let path: [String]

    /// The sentence.
    public var description: String { message }
    /// The sentence.
    public var errorDescription: String? { message }

    /// The kind of a refusal.
    ///
    /// New kinds may be added.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the kind.
        public let description: String

        private init(name: String) { description = name }

        /// Operations would wait for each other in a circle.
        public static let cycle = Code(name: "cycle")
        /// The operation was started before the dependency was added.
        public static let alreadyStarted = Code(name: "alreadyStarted")
    }

    static func cycle(_ path: [String]) -> DependencyError {
        let message =
            path.count == 2
            ? "\(path[0]) cannot depend on itself."
            : "This dependency would make operations wait for each other: \(path.joined(separator: " → ")) "
                + "(each waits for the next). Remove one of these dependencies."
        return DependencyError(code: .cycle, message: message, path: path)
    }

    static func alreadyStarted(_ name: String, dependency: String) -> DependencyError {
        DependencyError(
            code: .alreadyStarted,
            message: "\(name) was started, so it cannot wait for \(dependency) any more. "
                + "Add dependencies before an operation is started or given to a queue.",
            path: [])
    }
}
