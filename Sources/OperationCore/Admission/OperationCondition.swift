// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What must hold for an operation to begin, found out when its dependencies ended.
///
/// ```swift
/// let hasRoom = OperationCondition("room on disk") { _ in
///     let free = try? FileManager.default.attributesOfFileSystem(forPath: "/")[.systemFreeSize] as? Int
///     return (free ?? 0) > 1_000_000 ? .satisfied : .failed("less than a megabyte is free")
/// }
/// let operation = ClosureOperation { 1 }
/// operation.addCondition(hasRoom)
/// operation.addCondition(.dependenciesSucceeded)
/// ```
///
/// An operation one of whose conditions fails is cancelled with the cause `conditionFailed`, and its body does not run.
public struct OperationCondition: Sendable {
    /// What came of a condition.
    ///
    /// No case will be added.
    public enum Verdict: Sendable, Equatable {
        /// The operation may begin.
        case satisfied
        /// It may not, for this reason, which is written as the end of a sentence.
        case failed(String)
    }

    /// What a condition is told of its operation.
    ///
    /// It does not keep the operation alive; nor should a closure.
    public struct Context: Sendable {
        /// The operation's name, or that of its type.
        public let operation: String
        /// What the operation depended on: all of it has ended.
        public let dependencies: [Operation]

        package init(operation: String, dependencies: [Operation]) {
            self.operation = operation
            self.dependencies = dependencies
        }
    }

    /// What is found out, in a word or two.
    public let name: String
    private let evaluator: @Sendable (Context) async -> Verdict

    /// Makes a condition.
    ///
    /// - Parameters:
    ///   - name: What is found out, in a word or two: `"room on disk"`.
    ///   - evaluate: Finds it out, on a task of its own, which is cancelled when the operation is. It may be called
    ///     again, if a dependency was added while it ran.
    public init(_ name: String, _ evaluate: @escaping @Sendable (Context) async -> Verdict) {
        self.name = name
        evaluator = evaluate
    }

    /// Finds out whether it holds.
    public func evaluate(_ context: Context) async -> Verdict { await evaluator(context) }
}
