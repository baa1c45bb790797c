// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

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
