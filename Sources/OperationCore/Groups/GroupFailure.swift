// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// An error that contains the reason why a group failed and the child that caused the failure, if any.
///
/// This type is the default error type of groups.
public struct GroupFailure: Error, Sendable, CustomStringConvertible, LocalizedError {
    /// A child that failed or was canceled.
    public struct Child: Sendable, CustomStringConvertible {
        /// The name of the child, or the name of the child's type if the child has no name.
        ///
        /// For an operation from `mapResult(_:)` or a similar method, this property is the name of the original
        /// operation. If you created the group with `map`, the name also contains the zero-based index and usually a
        /// description of the element.
        public let name: String
        /// The error of the child, or the cause of the child's cancellation.
        public let failure: OperationFailure<any Error>
        /// The failure of the child's recovery, or `nil` if no recovery failed.
        ///
        /// The value contains the error that the recovery closure threw, or the failure of the operation that last
        /// replaced the child. If the group did not accept the replacement, the value contains an
        /// ``OperationSetupError``.
        public let recoveryFailure: OperationFailure<any Error>?

        /// A description of the child and its failure in one line, for a log.
        public var description: String {
            "\(name) \(failure)" + (recoveryFailure.map { ", and its recovery \($0)" } ?? "")
        }

        init(name: String, failure: OperationFailure<any Error>, recoveryFailure: OperationFailure<any Error>? = nil) {
            self.name = name
            self.failure = failure.bounded
            self.recoveryFailure = recoveryFailure?.bounded
        }

        func adding(_ recoveryFailure: OperationFailure<any Error>?) -> Child {
            Child(name: name, failure: failure, recoveryFailure: recoveryFailure)
        }
    }

    /// The name of the group, or "the group" if the group has no name.
    public let group: String
    /// The child that caused the failure, or `nil` if no single child caused it.
    ///
    /// The value is `nil` if the body threw an error that is not from a child, if the sequence of elements failed, or
    /// if the group had too few children to succeed.
    public let child: Child?
    /// The error of the child that caused the failure, the error that the body threw, or the ``sourceError``.
    ///
    /// The value is `nil` if ``child`` was canceled, or if the group had too few children to succeed.
    public let underlyingError: (any Error)?
    /// The error of the asynchronous sequence that provides the elements, or `nil` if the sequence did not fail.
    ///
    /// If the sequence threw an ``OperationFailure`` that contains an error, this property is the contained error, so
    /// you can cast it to your error type.
    public let sourceError: (any Error)?
    /// The other children that failed or were canceled, in the order in which they ended.
    ///
    /// Children that the group canceled are not included. If the group has a body, the array contains at most the last
    /// hundred of the other children.
    public let siblings: [Child]
    /// The number of group failures inside this one, which is limited so that freeing and describing them needs no deep
    /// stack.
    fileprivate let depth: Int
    fileprivate static let deepest = 16

    /// A sentence that describes why the group failed.
    public var message: String {
        if let child {
            let recovery = child.recoveryFailure.map { "; its recovery \($0)" } ?? ""
            switch child.failure {
            case .failed(let error): return "\(child.name), a child of \(group), failed: \(error)\(recovery)"
            case .cancelled(let cause): return "\(child.name), a child of \(group), was canceled: \(cause)\(recovery)"
            }
        }
        if let sourceError { return "The sequence of elements of \(group) failed: \(sourceError)" }
        if let underlyingError { return "The body of \(group) failed: \(underlyingError)" }
        return "\(group) has no result, because too few of its children succeeded."
    }

    /// The message and the failures of the other children, for a log.
    public var description: String {
        siblings.isEmpty ? message : "\(message) [others: \(siblings.map(\.description).joined(separator: "; "))]"
    }

    /// The message of the error, which you can show to a user.
    public var errorDescription: String? { message }

    /// The child in which the failure originated, or `nil` if no single child caused the failure.
    ///
    /// In nested groups, this property is the innermost child that failed or was canceled. If more than 17 nested
    /// groups failed, the error omits groups in the middle.
    public var root: Child? {
        var root = child
        while let inner = root?.failure.underlyingError as? GroupFailure, let next = inner.child { root = next }
        return root
    }

    /// Creates the failure of a group whose outcome depended on its children.
    ///
    /// The child at fault is the first one whose failure does not only follow from that of a dependency.
    init(group: String, children: [Child]) {
        let index = children.firstIndex { !$0.failure.followsFromDependency } ?? children.indices.first
        let child = index.map { children[$0] }
        self.init(group: group, child, child?.failure.underlyingError, children, without: index)
    }

    /// Creates the failure of a group whose body threw an error, which may be the error of a child.
    init(group: String, thrown error: any Error, children: [Child]) {
        let error = bounded(error)
        let index = children.lastIndex { $0.failure.isSame(as: error) }
        self.init(group: group, index.map { children[$0] }, error, children, without: index)
    }

    /// Creates the failure of a group whose sequence of elements threw an error.
    init(group: String, sourceError error: any Error, children: [Child]) {
        let failure = error as? any AnyOperationFailure
        let error = bounded(failure?.underlyingError ?? error)
        self.init(group: group, nil, error, children, without: nil, sourceError: error)
    }

    private init(
        group: String, _ child: Child?, _ error: (any Error)?, _ children: [Child], without index: Int?,
        sourceError: (any Error)? = nil
    ) {
        (self.group, self.child, underlyingError, self.sourceError) = (group, child, error, sourceError)
        siblings = children.enumerated().filter { $0.offset != index }.map(\.element)
        let failures = children.flatMap { [$0.failure.underlyingError, $0.recoveryFailure?.underlyingError] } + [error]
        depth = (failures.compactMap { ($0 as? GroupFailure)?.depth }.max() ?? -1) + 1
    }
}

extension OperationFailure {
    package var cancellation: CancellationCause? {
        if case .cancelled(let cause) = self { cause } else { nil }
    }

    package var underlyingError: (any Error)? {
        if case .failed(let error) = self { error } else { nil }
    }
}

/// An `OperationFailure` with any error type.
package protocol AnyOperationFailure: Error {
    var cancellation: CancellationCause? { get }
    var underlyingError: (any Error)? { get }
}

extension OperationFailure: AnyOperationFailure {}

extension OperationFailure where ErrorType == any Error {
    /// Whether two errors have the same type and, if they can be compared, are equal.
    fileprivate func isSame(as other: any Error) -> Bool {
        guard let error = underlyingError, type(of: error) == type(of: other) else { return false }
        guard let comparable = (error as Any) as? any Equatable else { return true }
        return comparable.equals(other)
    }
}

extension Equatable {
    fileprivate func equals(_ other: Any) -> Bool { (other as? Self) == self }
}

/// Returns the error, or the error at the root if too many group failures are nested in it.
private func bounded(_ error: any Error) -> any Error {
    guard let failure = error as? GroupFailure, failure.depth >= GroupFailure.deepest else { return error }
    return failure.root?.failure.underlyingError ?? GroupFailure(group: failure.group, children: [])
}

extension OperationFailure where ErrorType == any Error {
    fileprivate var bounded: OperationFailure {
        if case .failed(let error) = self { .failed(OperationCore.bounded(error)) } else { self }
    }
}

/// A reason why a group does not accept an operation as its child.
enum GroupRefusal {
    case ended, inQueue, inGroup, alreadyStarted, alreadyFinished, cycle, wrongThread
}

extension OperationSetupError {
    /// Whether the operation cannot become a child of any group.
    var isAboutChild: Bool {
        switch code {
        case .alreadyAdded, .alreadyStarted, .alreadyFinished: true
        default: false
        }
    }

    /// Refuses a wait that would block the thread of an async body.
    static func blocksTask(_ operation: ManagedOperation) -> Self {
        Self(
            .cannotWait,
            "\(operation.displayName) was not started: `startAndWait()` would block the thread of the group's async "
                + "body. Call `try await group.run(operation)` there, or use a synchronous body and call "
                + "`try group.perform(operation)`.")
    }

    init(_ refusal: GroupRefusal, _ operation: ManagedOperation) {
        let (code, reason): (Code, String) =
            switch refusal {
            case .ended: (.closed, "the group has ended. Add operations before its last child ends.")
            case .inQueue: (.alreadyAdded, "it is in a queue. A group adds its children to a queue itself.")
            case .inGroup:
                (.alreadyAdded, "it is already a child of this group or of another one. Create another operation.")
            case .alreadyStarted: (.alreadyStarted, "it was started directly. Let the group start its children.")
            case .alreadyFinished:
                (.alreadyFinished, "it has ended. An operation runs only once, so create another one.")
            case .cycle:
                (.cycle, "it is the group itself or a group that contains it. Each would wait for the other.")
            case .wrongThread:
                (
                    .cannotWait,
                    "`perform` was not called on the thread of the group's body. Call it there, or use the async form "
                        + "of a body."
                )
            }
        self.init(code, "\(operation.displayName) did not become a child of the group, because \(reason)")
    }
}

extension CancellationCause {
    static func groupCancelled(_ place: GroupPlace, because cause: CancellationCause?) -> CancellationCause {
        CancellationCause(
            code: .groupCancelled, message: "The operation was canceled with its group ({group}).", place: place,
            underlyingCause: cause)
    }

    static func groupFailed(
        _ place: GroupPlace, _ failure: GroupFailure.Child?, _ sourceError: (any Error)?
    ) -> CancellationCause {
        let what =
            if sourceError != nil {
                "the sequence of the group's elements failed"
            } else {
                failure.map { "its sibling \($0.name) did not succeed" } ?? "the group can no longer succeed"
            }
        return CancellationCause(
            code: .groupFailed, message: "The operation was canceled because \(what) ({group}).", place: place,
            underlyingError: sourceError ?? failure?.failure.underlyingError,
            underlyingCause: sourceError == nil ? failure?.failure.cancellation : nil)
    }

    static func groupDecided(_ place: GroupPlace) -> CancellationCause {
        CancellationCause(
            code: .groupDecided,
            message: "The operation was canceled because its group ({group}) already has its result.",
            place: place)
    }

    static func groupRefused(_ error: OperationSetupError) -> CancellationCause {
        CancellationCause(code: .groupRefused, message: error.message, underlyingError: error)
    }

    static func childCancelled(_ cause: CancellationCause) -> CancellationCause {
        CancellationCause(
            code: .childCancelled,
            message: "The group was canceled because a child was canceled whose result the body needs. "
                + "If the body can continue without this result, catch the cancellation in the body.",
            underlyingCause: cause)
    }
}
