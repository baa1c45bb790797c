// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Why a group has no result: the child at fault, what became of it, and the errors of the others.
///
/// It is the error of a group for which you name no other.
public struct GroupFailure: Error, Sendable, CustomStringConvertible, LocalizedError {
    /// A child that gave no result.
    public struct Child: Sendable, CustomStringConvertible {
        /// The name of the operation, or else the name of its type; of a mapped operation, that of its original.
        ///
        /// If a map created the operation, the index and the description of the element follow; if a pipeline did, the index
        /// of the element and that of the stage. Each index is counted from zero.
        public let name: String
        /// Its error, or why it was cancelled.
        public let failure: OperationFailure<any Error>
        /// Why it could not be recovered, if that was tried: what the recovery threw, or the failure of the operation
        /// that last took its place.
        public let recoveryFailure: OperationFailure<any Error>?

        /// One line for a log.
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

    /// The name of the group.
    public let group: String
    /// The child at fault; nil if the body or the sequence of elements failed, or if there were too few children.
    public let child: Child?
    /// The error as it was: the child's, what the body threw, or ``sourceError``; nil if a child was cancelled or too few
    /// gave a result.
    public let underlyingError: (any Error)?
    /// The error of the asynchronous sequence whose elements the group went through; nil if something else failed.
    ///
    /// If the sequence threw an ``OperationFailure``, this is the error in it, so you can cast it to your error type. A
    /// `CancellationError` and an ``OperationFailure/cancelled(_:)`` are kept as they are.
    public let sourceError: (any Error)?
    /// The other children that gave no result, in the order in which they ended; without those that the group
    /// cancelled.
    ///
    /// Of a group with a body, among its last hundred.
    public let siblings: [Child]
    /// How many group failures lie beneath: bounded, so that freeing and describing them takes no deep stack.
    fileprivate let depth: Int
    fileprivate static let deepest = 16

    /// What failed, as a sentence.
    public var message: String {
        if let child {
            let recovery = child.recoveryFailure.map { "; its recovery \($0)" } ?? ""
            switch child.failure {
            case .failed(let error): return "\(child.name), a child of \(group), failed: \(error)\(recovery)"
            case .cancelled(let cause): return "\(child.name), a child of \(group), was cancelled: \(cause)\(recovery)"
            }
        }
        if let sourceError { return "The sequence of elements of \(group) failed: \(sourceError)" }
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
    ///
    /// Of groups that are nested very deep those in the middle are left out.
    public var root: Child? {
        var root = child
        while let inner = root?.failure.underlyingError as? GroupFailure, let next = inner.child { root = next }
        return root
    }

    /// The failure of a group whose children decided.
    ///
    /// At fault is the first child, but for those that only follow from what they depended on.
    init(group: String, children: [Child]) {
        let index = children.firstIndex { !$0.failure.followsFromDependency } ?? children.indices.first
        let child = index.map { children[$0] }
        self.init(group: group, child, child?.failure.underlyingError, children, without: index)
    }

    /// What the body threw, which may be the error of a child.
    init(group: String, thrown error: any Error, children: [Child]) {
        let error = bounded(error)
        let index = children.lastIndex { $0.failure.isSame(as: error) }
        self.init(group: group, index.map { children[$0] }, error, children, without: index)
    }

    /// What the sequence of elements threw.
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

/// The error itself, or where too many group failures lie beneath it, that with which it all began.
private func bounded(_ error: any Error) -> any Error {
    guard let failure = error as? GroupFailure, failure.depth >= GroupFailure.deepest else { return error }
    return failure.root?.failure.underlyingError ?? GroupFailure(group: failure.group, children: [])
}

extension OperationFailure where ErrorType == any Error {
    fileprivate var bounded: OperationFailure {
        if case .failed(let error) = self { .failed(OperationCore.bounded(error)) } else { self }
    }
}

/// Why a group did not take an operation as its child.
public struct GroupError: Error, Sendable, Equatable, CustomStringConvertible, LocalizedError {
    /// The kind of the error.
    public let code: Code
    /// What was refused, why, and what to do, as a sentence.
    public let message: String

    /// The sentence and the kind, for a log line.
    public var description: String { "\(message) [\(code)]" }

    /// The sentence to show to a person.
    public var errorDescription: String? { message }

    /// The kind of an error.
    ///
    /// New kinds may be added; compare, and keep a way for those you do not know.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the kind, fit for a metric's label.
        public let description: String

        private init(_ name: String) { description = name }

        /// The group has ended.
        public static let ended = Code("ended")
        /// The operation is in a queue.
        public static let inQueue = Code("inQueue")
        /// The operation is a child of a group, of this one or of another.
        public static let inGroup = Code("inGroup")
        /// The operation was started by hand.
        public static let alreadyStarted = Code("alreadyStarted")
        /// The operation has ended.
        public static let alreadyFinished = Code("alreadyFinished")
        /// The operation is the group itself, or one around it.
        public static let cycle = Code("cycle")
        /// The body of a group cannot wait on the calling thread: a synchronous body called `perform` on another thread than
        /// its own, or an async body called `startAndWait()`.
        public static let wrongThread = Code("wrongThread")
    }

    /// Whether it is the operation that cannot be a child, of whatever group.
    var isAboutChild: Bool {
        switch code {
        case .inQueue, .inGroup, .alreadyStarted, .alreadyFinished: true
        default: false
        }
    }

    /// Refuses a wait that would block the thread of an async body.
    static func blocksTask(_ operation: ManagedOperation) -> GroupError {
        GroupError(
            .wrongThread,
            "\(operation.displayName) was not started: `startAndWait()` would block the thread of the group's async body. "
                + "Call `try await group.run(operation)` there, or use a synchronous body and call "
                + "`try group.perform(operation)`.")
    }

    private init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    init(_ code: Code, _ operation: ManagedOperation) {
        let what = "\(operation.displayName) is no child of the group"
        self.code = code
        message =
            switch code {
            case .ended: "\(what), since the group has ended. Add what it is to run before its last child ends."
            case .inQueue: "\(what), since it is in a queue. A group gives its children to a queue by itself."
            case .inGroup: "\(what), since it is one already, of this group or another. Make another operation."
            case .alreadyStarted: "\(what), since it was started by hand. Leave that to the group."
            case .alreadyFinished: "\(what), since it has ended. An operation runs once; make another."
            case .cycle: "\(what), since it is the group itself or one around it. Each would wait for the other."
            default:
                "\(what): `perform` was not called on the thread of the group's body. Call it there, or use the async "
                    + "form of a body."
            }
    }
}

extension CancellationCause {
    static func groupCancelled(_ place: GroupPlace, because cause: CancellationCause?) -> CancellationCause {
        CancellationCause(
            code: .groupCancelled, message: "The operation was cancelled with its group ({group}).", place: place,
            underlyingCause: cause)
    }

    static func groupFailed(
        _ place: GroupPlace, _ failure: GroupFailure.Child?, _ sourceError: (any Error)?
    ) -> CancellationCause {
        let what =
            if sourceError != nil {
                "the sequence of the group's elements failed"
            } else {
                failure.map { "its sibling \($0.name) gave no result" } ?? "the group cannot succeed any more"
            }
        return CancellationCause(
            code: .groupFailed, message: "The operation was cancelled because \(what) ({group}).", place: place,
            underlyingError: sourceError ?? failure?.failure.underlyingError,
            underlyingCause: sourceError == nil ? failure?.failure.cancellation : nil)
    }

    static func groupDecided(_ place: GroupPlace) -> CancellationCause {
        CancellationCause(
            code: .groupDecided, message: "The operation was cancelled because its group ({group}) has its result.",
            place: place)
    }

    static func groupRefused(_ error: GroupError) -> CancellationCause {
        CancellationCause(code: .groupRefused, message: error.message, underlyingError: error)
    }

    static func childCancelled(_ cause: CancellationCause) -> CancellationCause {
        CancellationCause(
            code: .childCancelled,
            message: "The group was cancelled because a child was whose result its body needs. Catch the child's "
                + "cancellation in the body if it can do without.",
            underlyingCause: cause)
    }
}
