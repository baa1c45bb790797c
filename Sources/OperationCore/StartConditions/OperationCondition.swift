// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A check that decides whether an operation may begin after its dependencies have ended.
///
/// ```swift
/// let hasRoom = OperationCondition("room on disk") { _ in
///     let attributes = try? FileManager.default
///         .attributesOfFileSystem(forPath: "/")
///     let free = attributes?[.systemFreeSize] as? Int
///     return (free ?? 0) > 1_000_000
///         ? .satisfied : .failed("less than a megabyte is free")
/// }
/// let operation = ClosureOperation { 1 }
/// operation.addCondition(hasRoom)
/// operation.addCondition(.dependenciesSucceeded)
/// ```
///
/// If a condition fails, the operation is canceled with the cause `conditionFailed`, and the body does not run.
public struct OperationCondition: Sendable {
    /// The result of evaluating a condition.
    ///
    /// Only a major version may add cases.
    public enum Verdict: Sendable, Equatable {
        /// The condition is satisfied, so the operation may begin.
        case satisfied
        /// The condition is not satisfied for the given reason, so the operation must not begin.
        ///
        /// Write the reason as the end of a sentence, such as "less than a megabyte is free".
        case failed(String)
    }

    /// The information that a condition receives about the operation.
    ///
    /// The context does not keep the operation alive. The closure of a condition should not keep the operation alive
    /// either.
    public struct Context: Sendable {
        /// The name of the operation, or the name of the operation's type if the operation has no name.
        public let operation: String
        /// The dependencies of the operation, all of which have ended.
        public let dependencies: [Operation]

        package init(operation: String, dependencies: [Operation]) {
            self.operation = operation
            self.dependencies = dependencies
        }
    }

    /// A short description of the requirement that the condition checks.
    public let name: String
    /// Evaluates the condition in the current task and returns the verdict.
    package let evaluate: @Sendable (Context) async -> Verdict

    /// Creates a condition that a closure checks.
    ///
    /// - Parameters:
    ///   - name: A short description of the requirement that the condition checks, such as `"room on disk"`.
    ///   - evaluate: The closure that checks the condition. The closure runs in a task that is canceled with the
    ///     operation. If a dependency was added while the closure ran, the closure may be called again.
    public init(_ name: String, _ evaluate: @escaping @Sendable (Context) async -> Verdict) {
        self.name = name
        self.evaluate = evaluate
    }
}

// Combined conditions. To combine many, use `all` and `any`, which need no nesting.
extension OperationCondition {
    /// Returns a condition that is satisfied if the given condition fails.
    ///
    /// - Parameter other: The condition to negate.
    public static func not(_ other: OperationCondition) -> OperationCondition {
        OperationCondition("not \(other.name)") { context in
            await other.evaluate(context) == .satisfied ? .failed("\(other.name) is satisfied") : .satisfied
        }
    }

    /// Returns a condition that is satisfied if all of the given conditions are satisfied.
    ///
    /// The conditions are evaluated in order, up to the first condition that fails. If the array is empty, the combined
    /// condition is satisfied.
    ///
    /// - Parameters:
    ///   - conditions: The conditions to combine.
    ///   - name: The name of the combined condition. The default is `nil`, which joins the names of the conditions.
    public static func all(_ conditions: [OperationCondition], name: String? = nil) -> OperationCondition {
        OperationCondition(name ?? conditions.map(\.name).joined(separator: ", ")) { context in
            for condition in conditions {
                if case .failed(let reason) = await condition.evaluate(context) { return .failed(reason) }
            }
            return .satisfied
        }
    }

    /// Returns a condition that is satisfied if at least one of the given conditions is satisfied.
    ///
    /// The conditions are evaluated in order, up to the first condition that is satisfied. If the array is empty, the
    /// combined condition fails.
    ///
    /// - Parameters:
    ///   - conditions: The conditions to combine.
    ///   - name: The name of the combined condition. The default is `nil`, which joins the names of the conditions.
    public static func any(_ conditions: [OperationCondition], name: String? = nil) -> OperationCondition {
        OperationCondition(name ?? conditions.map(\.name).joined(separator: " or ")) { context in
            var reasons: [String] = []
            for condition in conditions {
                guard case .failed(let reason) = await condition.evaluate(context) else { return .satisfied }
                reasons.append(reason)
            }
            return .failed(reasons.isEmpty ? "there are no conditions" : reasons.joined(separator: ", and "))
        }
    }
}

// Predefined conditions.
extension OperationCondition {
    /// A condition that is satisfied if no dependency of the operation failed or was canceled.
    ///
    /// For a plain `Foundation.Operation`, only a cancellation counts, because a plain operation reports no error.
    public static let dependenciesSucceeded = OperationCondition("dependencies succeeded") { context in
        for dependency in context.dependencies {
            guard let unsuccessful = UnsuccessfulDependency(dependency) else { continue }
            let end = unsuccessful.cause.code == .dependencyFailed ? "failed" : "was canceled"
            return .failed("\(dependency.displayName) \(end)")
        }
        return .satisfied
    }
}

extension ManagedOperation {
    final func evaluateConditions(_ ticket: AdmissionTicket) {
        let (conditions, dependencies) = core.withLock { core in
            (core.admission?.conditions ?? [], core.node?.upstreamOperations ?? [])
        }
        let context = OperationCondition.Context(operation: displayName, dependencies: dependencies)
        var task: Task<Void, Never>? = Task {
            for condition in conditions {
                if Task.isCancelled { return }
                if case .failed(let reason) = await condition.evaluate(context) {
                    ticket.operation?.conditionDidFail(condition.name, reason, ticket)
                    return
                }
            }
            ticket.operation?.admissionDidPass(.conditions, ticket)
        }
        core.withLock { core in
            guard let admission = core.admission, admission.ticket == ticket else { return }
            guard admission.machine.currentStep == .conditions else { return }
            admission.evaluation = exchange(&task, with: nil)
        }
        // The round was withdrawn in the meantime, or the conditions already have a verdict.
        task?.cancel()
    }

    private func conditionDidFail(_ name: String, _ reason: String, _ ticket: AdmissionTicket) {
        let (isCurrent, old) = core.withLock { core -> (Bool, ReleasedAdmission?) in
            guard core.admission?.ticket == ticket else { return (false, nil) }
            let old = core.withdrawOutdatedAdmission()
            return (old == nil, old)
        }
        old?.giveBack()
        if isCurrent { cancelIfUndecided(because: .conditionFailed(name, reason)) }
    }
}

extension CancellationCause.Code {
    /// A condition of the operation was not satisfied.
    public static let conditionFailed = Self("conditionFailed")
}

extension CancellationCause {
    fileprivate static func conditionFailed(_ name: String, _ reason: String) -> CancellationCause {
        CancellationCause(
            code: .conditionFailed,
            message: "The operation was canceled because its condition \"\(name)\" failed: \(reason).")
    }
}
