// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Why a group has no result: the child at fault, what became of it, and the errors of the others.
///
/// It is the error of a group for which you name no other.
public struct GroupFailure: Error, Sendable, CustomStringConvertible, LocalizedError {
    /// A child that gave no result.
    public struct Child: Sendable, CustomStringConvertible {
        /// The operation's name, or else that of its type.
        public let name: String
        /// Its error, or why it was cancelled.
        public let failure: OperationFailure<any Error>

        /// One line for a log.
        public var description: String { "\(name) \(failure)" }
    }

    /// The name of the group.
    public let group: String
    /// The child at fault; nil if the body failed by itself, or if there were too few children.
    public let child: Child?
    /// The error as it was: the child's, or what the body threw; nil if a child was cancelled or too few gave a result.
    public let underlyingError: (any Error)?
    /// The other children that gave no result, in the order in which they ended; without those that the group cancelled.
    ///
    /// Of a group with a body, among its last hundred.
    public let siblings: [Child]

    /// What failed, as a sentence.
    public var message: String {
        if let child {
            switch child.failure {
            case .failed(let error): return "\(child.name), a child of \(group), failed: \(error)"
            case .cancelled(let cause): return "\(child.name), a child of \(group), was cancelled: \(cause)"
            }
        }
        if let underlyingError { return "The body of \(group) failed: \(underlyingError)" }
        return "\(group) has no result: too few of its children gave one."
    }

    /// The sentence, and the errors of the other children.
    public var description: String {
        siblings.isEmpty ? message : "\(message) [others: \(siblings.map(\.description).joined(separator: "; "))]"
    }

    /// The sentence to show to a person.
    public var errorDescription: String? { message }

    /// The child where it began: in groups within groups the innermost one.
    public var root: Child? {
        var root = child
        while let inner = root?.failure.underlyingError as? GroupFailure, let next = inner.child { root = next }
        return root
    }

    /// The failure of a group whose children decided.
    init(group: String, children: [Child]) {
        self.group = group
        child = children.first
        underlyingError = children.first?.failure.underlyingError
        siblings = Array(children.dropFirst())
    }

    /// What the body threw, which may be the error of a child.
    init(group: String, thrown error: any Error, children: [Child]) {
        self.group = group
        let index = children.lastIndex { $0.failure.isSame(as: error) }
        child = index.map { children[$0] }
        underlyingError = error
        siblings = children.enumerated().filter { $0.offset != index }.map(\.element)
    }
}

extension OperationFailure {
    var cancellation: CancellationCause? {
        if case .cancelled(let cause) = self { cause } else { nil }
    }

    var underlyingError: (any Error)? {
        if case .failed(let error) = self { error } else { nil }
    }
}

/// An `OperationFailure` of whatever error type.
protocol AnyOperationFailure: Error {
    var cancellation: CancellationCause? { get }
    var underlyingError: (any Error)? { get }
}

extension OperationFailure: AnyOperationFailure {}

extension OperationFailure where ErrorType == any Error {
    /// Whether that is this error, as far as can be told: of the same type, and equal where they can be compared.
    fileprivate func isSame(as other: any Error) -> Bool {
        guard let error = underlyingError, type(of: error) == type(of: other) else { return false }
        guard let comparable = (error as Any) as? any Equatable else { return true }
        return comparable.equals(other)
    }
}

extension Equatable {
    fileprivate func equals(_ other: Any) -> Bool { (other as? Self) == self }
}
