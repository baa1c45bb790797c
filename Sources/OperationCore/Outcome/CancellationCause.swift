// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// The reason for the cancellation of an operation.
///
/// The ``code`` is for programs, and the ``message`` is for people.
///
/// A cause may have an underlying cause. For example, if an operation is canceled because its dependency timed out, the
/// ``underlyingCause`` is the timeout. If the dependency failed instead, ``underlyingError`` is the error of the
/// dependency.
public struct CancellationCause: Sendable, Equatable, CustomStringConvertible {
    /// The code that identifies the cause.
    public var code: Code { storage.code }

    /// A message that describes the reason for the cancellation and, for some codes, a solution.
    public var message: String {
        guard let place = storage.place else { return storage.message }
        return storage.message.replacing("{group}", with: "\(place)")
    }

    /// The names of the groups that passed on the cancellation, from the outermost group inward, or `nil` if the
    /// cancellation did not come from a group.
    ///
    /// The last name belongs to the group that contains the canceled operation. If 16 or more groups are nested, the
    /// path can omit outer groups.
    public var path: [String]? { storage.place?.names }

    /// The error that led to this cancellation, such as the error of a failed dependency, or `nil` if there is none.
    public var underlyingError: (any Error)? { storage.underlyingError }

    /// The cause of an earlier cancellation that led to this one, for example in a dependency, or `nil` if there is
    /// none.
    ///
    /// If a chain of underlying causes has more than sixteen causes, OperationKit omits causes in the middle and keeps
    /// the original cause.
    public var underlyingCause: CancellationCause? { storage.underlyingCause }

    /// A description in one line for a log, with the code, the message and the underlying causes.
    public var description: String {
        let underlying = underlyingCause.map { " ← \($0)" } ?? underlyingError.map { " ← \($0)" } ?? ""
        return "[\(code)] \(message)\(underlying)"
    }

    /// Returns a Boolean value that indicates whether two causes have the same code and the same message.
    public static func == (left: CancellationCause, right: CancellationCause) -> Bool {
        left.storage === right.storage || (left.code == right.code && left.message == right.message)
    }

    /// Creates a cause with a code and a message.
    ///
    /// - Parameters:
    ///   - code: The code that identifies the cause.
    ///   - message: A message that describes the reason for the cancellation and, for some codes, a solution.
    ///   - underlyingError: The error that led to the cancellation. The default is `nil`.
    ///   - underlyingCause: The cancellation that led to this cancellation. The default is `nil`.
    public init(
        code: Code,
        message: String,
        underlyingError: (any Error)? = nil,
        underlyingCause: CancellationCause? = nil
    ) {
        storage = Storage(
            code: code, message: message, underlyingError: underlyingError, underlyingCause: underlyingCause)
    }

    /// Creates a cause that comes from a group.
    ///
    /// The path of the group replaces "{group}" in the message.
    init(
        code: Code, message: String, place: GroupPlace, underlyingError: (any Error)? = nil,
        underlyingCause: CancellationCause? = nil
    ) {
        storage = Storage(
            code: code, message: message, underlyingError: underlyingError, underlyingCause: underlyingCause,
            place: place)
    }

    /// The first cause in the chain.
    private var root: CancellationCause {
        var root = self
        while let next = root.underlyingCause { root = next }
        return root
    }

    // One word in each operation, and no allocation for the most frequent cause.
    private let storage: Storage

    private final class Storage: Sendable {
        let code: Code
        let message: String
        let underlyingError: (any Error)?
        let underlyingCause: CancellationCause?
        /// The group from which the cause comes.
        ///
        /// The place is converted to text only when the message is read.
        let place: GroupPlace?

        /// The number of underlying causes.
        ///
        /// The number is bounded, so that freeing and describing them needs no deep stack.
        let depth: Int

        init(
            code: Code, message: String, underlyingError: (any Error)?, underlyingCause: CancellationCause?,
            place: GroupPlace? = nil
        ) {
            self.code = code
            self.place = place
            self.message = message
            self.underlyingError = underlyingError
            let isTooDeep = underlyingCause.map { $0.storage.depth >= 16 } ?? false
            self.underlyingCause = isTooDeep ? underlyingCause?.root : underlyingCause
            depth = self.underlyingCause.map { $0.storage.depth + 1 } ?? 0
        }
    }
}

extension CancellationCause {
    /// A code that identifies a cancellation cause.
    ///
    /// Later versions may add codes. If you compare codes, also handle unknown codes.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the code, which is suitable as a metric label.
        public let description: String

        /// Creates a custom code with a name.
        ///
        /// - Parameter name: The name, which should differ from the names of the standard codes.
        public init(_ name: String) {
            description = name
        }

        /// A call to a `cancel` method canceled the operation.
        public static let requested = Code("requested")
        /// The body of the operation took longer than the operation's `timeout`.
        public static let timedOut = Code("timedOut")
        /// The `deadline` of the operation passed before the operation ended.
        public static let deadlinePassed = Code("deadlinePassed")
        /// A dependency of the operation failed, and the rule for this dependency canceled the operation.
        public static let dependencyFailed = Code("dependencyFailed")
        /// A dependency of the operation was canceled, and the rule for this dependency canceled the operation.
        public static let dependencyCancelled = Code("dependencyCancelled")
        /// The operation could not receive an input, because some of the dependencies that provide the input were
        /// removed.
        public static let inputMissing = Code("inputMissing")
        /// The body returned without finishing the operation with a result or an error.
        public static let noResult = Code("noResult")
        /// The Swift task that awaited the operation was canceled.
        public static let taskCancelled = Code("taskCancelled")
        /// A body called a method that waits, but too many bodies were already waiting and blocking threads.
        public static let tooManyWaits = Code("tooManyWaits")
        /// A body called a method that waits for an operation that cannot end before the body has returned.
        ///
        /// A child of a group also gets this cause if the child needs a category or throttle key, and all operations
        /// that hold it wait for the child. The same applies if the child depends on its group.
        public static let waitsForItself = Code("waitsForItself")
        /// The operation's queue was shut down, or was released while suspended, before the operation ended.
        public static let shutDown = Code("shutDown")
        /// The group that contains the operation was canceled.
        public static let groupCancelled = Code("groupCancelled")
        /// The group that contains the operation failed, for example because another child did not succeed or the body
        /// threw an error.
        public static let groupFailed = Code("groupFailed")
        /// The group that contains the operation already has its result and no longer needs the operation.
        public static let groupDecided = Code("groupDecided")
        /// The group did not accept the operation as a child.
        ///
        /// For example, the group has ended, the operation waits for the group, or the body of the group must not wait
        /// on the calling thread.
        public static let groupRefused = Code("groupRefused")
        /// The operation is a group whose body needed the result of a child, and this child was canceled.
        public static let childCancelled = Code("childCancelled")
        /// The body of the operation threw a `CancellationError`.
        public static let bodyCancelled = Code("bodyCancelled")
    }
}

extension CancellationCause {
    /// A cause that indicates that a call to `cancel()` canceled the operation.
    public static let requested = CancellationCause(code: .requested, message: "The operation was canceled.")

    /// Returns a cause with the code `requested` and your own message.
    ///
    /// - Parameter reason: The message of the cause.
    public static func requested(_ reason: String) -> CancellationCause {
        CancellationCause(code: .requested, message: reason)
    }

    /// A cause that indicates that the task that awaited the operation was canceled.
    package static let taskCancelled = CancellationCause(
        code: .taskCancelled, message: "The operation was canceled because the task that awaited it was canceled.")

    /// A cause that indicates that the operation's body threw a `CancellationError`.
    package static let bodyCancelled = CancellationCause(
        code: .bodyCancelled, message: "The operation was canceled because its body threw CancellationError.")

    static let noResult = CancellationCause(
        code: .noResult,
        message: "main() returned without a result. Call finish(withResult:) or finish(withError:) on each path.")

    static let inputMissing = CancellationCause(
        code: .inputMissing,
        message: "An input has no value, because it comes from several dependencies and one of them was removed. "
            + "Remove all dependencies of an input, or none.")

    static func timedOut(after timeout: Duration) -> CancellationCause {
        CancellationCause(
            code: .timedOut,
            message: timeout > .zero
                ? "The operation did not end within its timeout of \(timeout)."
                : "The operation's timeout of \(timeout) leaves it no time to run. Set a timeout greater than zero.")
    }

    static let tooManyWaits = CancellationCause(
        code: .tooManyWaits,
        message:
            "\(ThreadNotes.mostQueueThreads - 1) bodies or evaluators of operations already block their threads while "
            + "they wait for other operations. Another wait could leave no thread for the operations that they wait "
            + "for. Nest the waits less deeply, or await in async code.")

    /// Returns a cause for a circle of operations, in which each one needs the end of the next one.
    static func waitsForItself(_ cycle: [String]) -> CancellationCause {
        CancellationCause(
            code: .waitsForItself,
            message: "The wait would never end, because each of these operations needs the next one to end: "
                + cycle.joined(separator: " \u{2192} ")
                + ". Do not wait for an operation or its group in code that must return before the operation can end.")
    }

    static func shutDown(_ queue: String) -> CancellationCause {
        CancellationCause(
            code: .shutDown, message: "Queue \(queue) was shut down or released before the operation ended.")
    }

    static let deadlinePassed = CancellationCause(
        code: .deadlinePassed, message: "The operation had not ended when its deadline passed.")

    static func dependencyFailed(_ name: String, _ error: any Error) -> CancellationCause {
        CancellationCause(
            code: .dependencyFailed,
            message: "The operation was canceled because its dependency \(name) failed.",
            underlyingError: error)
    }

    static func dependencyCancelled(_ name: String, _ cause: CancellationCause?) -> CancellationCause {
        CancellationCause(
            code: .dependencyCancelled,
            message: "The operation was canceled because its dependency \(name) was canceled.",
            underlyingCause: cause)
    }
}

/// The position of a group in a tree of groups: its name, and the position of the group around it.
///
/// There is one object for each group that canceled its children. All operations in the group share the object.
package final class GroupPlace: Sendable, CustomStringConvertible {
    private let name: String
    private let outer: GroupPlace?
    private let depth: Int

    /// The maximum number of names.
    ///
    /// The limit ensures that freeing and describing a path needs no deep stack.
    private static let most = 16

    init(_ name: String?, in outer: GroupPlace?) {
        self.name = name ?? "group"
        depth = (outer?.depth ?? 0) + 1
        // For deeper nesting, only the inner half is kept.
        self.outer = depth % Self.most == 0 ? outer?.cut(to: Self.most / 2) : outer
    }

    private init(_ name: String, in outer: GroupPlace?, depth: Int) {
        self.name = name
        self.outer = outer
        self.depth = depth
    }

    private func cut(to count: Int) -> GroupPlace {
        var kept: [GroupPlace] = []
        var next: GroupPlace? = self
        while let place = next, kept.count < count {
            kept.append(place)
            next = place.outer
        }
        let start: GroupPlace? = next == nil ? nil : GroupPlace("…", in: nil, depth: 0)
        let copy = kept.reversed().reduce(start) { GroupPlace($1.name, in: $0, depth: $1.depth) }
        return copy ?? self
    }

    /// The names from the outermost group inward.
    package var names: [String] {
        var names: [String] = []
        var next: GroupPlace? = self
        while let place = next {
            names.append(place.name)
            next = place.outer
        }
        return names.reversed()
    }

    package var description: String { names.joined(separator: " › ") }
}
