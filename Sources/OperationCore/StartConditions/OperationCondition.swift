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

// Conditions made of others. To combine many, use `all` and `any`, which take them in a row.
extension OperationCondition {
    /// Holds if both do; the second is not looked at where the first fails.
    public func and(_ other: OperationCondition) -> OperationCondition {
        .all([self, other], name: "\(name) and \(other.name)")
    }

    /// Holds if one of the two does; the second is not looked at where the first holds.
    public func or(_ other: OperationCondition) -> OperationCondition {
        .any([self, other], name: "\(name) or \(other.name)")
    }

    /// Holds if the other one fails.
    public static func not(_ other: OperationCondition) -> OperationCondition {
        OperationCondition("not \(other.name)") { context in
            await other.evaluate(context) == .satisfied ? .failed("\(other.name) holds") : .satisfied
        }
    }

    /// Holds if all do, in their order up to the first that fails; without any it holds.
    public static func all(_ conditions: [OperationCondition], name: String? = nil) -> OperationCondition {
        OperationCondition(name ?? conditions.map(\.name).joined(separator: ", ")) { context in
            for condition in conditions {
                if case .failed(let reason) = await condition.evaluate(context) { return .failed(reason) }
            }
            return .satisfied
        }
    }

    /// Holds if one does, in their order up to the first that holds; without any it fails.
    public static func any(_ conditions: [OperationCondition], name: String? = nil) -> OperationCondition {
        OperationCondition(name ?? conditions.map(\.name).joined(separator: " or ")) { context in
            var reasons: [String] = []
            for condition in conditions {
                guard case .failed(let reason) = await condition.evaluate(context) else { return .satisfied }
                reasons.append(reason)
            }
            return .failed(reasons.isEmpty ? "there is nothing that could hold" : reasons.joined(separator: ", and "))
        }
    }
}

// Ready ones.
extension OperationCondition {
    /// Holds if no dependency failed or was cancelled.
    ///
    /// Of a dependency of another kind it is only known whether it was cancelled.
    public static let dependenciesSucceeded = OperationCondition("dependencies succeeded") { context in
        for dependency in context.dependencies {
            guard let unsuccessful = UnsuccessfulDependency(dependency) else { continue }
            let end = unsuccessful.cause.code == .dependencyFailed ? "failed" : "was cancelled"
            return .failed("\(dependency.displayName) \(end)")
        }
        return .satisfied
    }

    /// Holds if no dependency was cancelled; those that failed do not matter.
    public static let noDependencyCancelled = OperationCondition("no dependency was cancelled") { context in
        let cancelled = context.dependencies.first(where: \.isCancelled)
        return cancelled.map { .failed("\($0.displayName) was cancelled") } ?? .satisfied
    }
}
