// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The reason for the cancellation of an operation.
///
/// A cause has a ``code`` for programs and a ``message`` for people.
///
/// A cause may have an underlying cause. For example, if an operation is canceled because its dependency timed out, the
/// ``underlyingCause`` is the timeout. If the dependency failed instead, ``underlyingError`` is the error of the
/// dependency.
public struct CancellationCause: Sendable, Equatable, CustomStringConvertible {
    /// The code that identifies the cause.
    public var code: Code { storage.code }

    /// A sentence that describes the event and a possible solution.
    public var message: String {
        guard let place = storage.place else { return storage.message }
        return storage.message.replacing("{group}", with: "\(place)")
    }

    /// The names of the groups from which the cancellation came, from the outermost group inward, or `nil` if the
    /// cancellation came from no group.
    ///
    /// The last name belongs to the group that canceled its children. For very deeply nested groups, the path omits
    /// outer groups.
    public var path: [String]? { storage.place?.names }

    /// The error that led to this cancellation, such as the error of a failed dependency.
    public var underlyingError: (any Error)? { storage.underlyingError }

    /// The cancellation that led to this cancellation, such as the cancellation of a dependency.
    ///
    /// If a chain has more than sixteen causes, the causes in the middle are omitted and the first cause is kept.
    public var underlyingCause: CancellationCause? { storage.underlyingCause }

    /// A one-line description for a log, with the code, the message and the underlying causes.
    public var description: String {
        let beneath = underlyingCause.map { " ← \($0)" } ?? underlyingError.map { " ← \($0)" } ?? ""
        return "[\(code)] \(message)\(beneath)"
    }

    /// Returns a Boolean value that indicates whether two causes have the same code and the same message.
    public static func == (left: CancellationCause, right: CancellationCause) -> Bool {
        left.storage === right.storage || (left.code == right.code && left.message == right.message)
    }

    /// Creates a custom cause.
    ///
    /// - Parameters:
    ///   - code: The code that identifies the cause.
    ///   - message: A sentence that describes the event and a possible solution.
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

        /// Creates a custom code.
        public init(_ name: String) {
            description = name
        }

        /// A call to `cancel` canceled the operation.
        public static let requested = Code("requested")
        /// The execution took longer than its `timeout`.
        public static let timedOut = Code("timedOut")
        /// The operation's `deadline` passed before the operation ended.
        public static let deadlinePassed = Code("deadlinePassed")
        /// A dependency failed, and the rule of the dependency cancels its dependents.
        public static let dependencyFailed = Code("dependencyFailed")
        /// A dependency was canceled, and the rule of the dependency cancels its dependents.
        public static let dependencyCancelled = Code("dependencyCancelled")
        /// An input could not be passed on, because only some of the dependencies that provide it were removed.
        public static let inputMissing = Code("inputMissing")
        /// The body returned without a result and without an error.
        public static let noResult = Code("noResult")
        /// The Swift task that awaited the operation was canceled.
        public static let taskCancelled = Code("taskCancelled")
        /// A body tried to wait, but the maximum number of bodies already wait on threads.
        public static let tooManyWaits = Code("tooManyWaits")
        /// A body tried to wait for an operation that cannot end before that body has returned.
        public static let waitsForItself = Code("waitsForItself")
        /// The queue was shut down before the operation ended.
        public static let shutDown = Code("shutDown")
        /// The group that contains the operation was canceled.
        public static let groupCancelled = Code("groupCancelled")
        /// Another child of the group gave no result, and the group failed.
        public static let groupFailed = Code("groupFailed")
        /// The group has its result and no longer needs the operation.
        public static let groupDecided = Code("groupDecided")
        /// The group refused to run the operation.
        ///
        /// The group has ended, the operation waits for that group, or the body of the group cannot wait on the calling
        /// thread.
        public static let groupRefused = Code("groupRefused")
        /// A child of the group was canceled, and the body needed its result.
        public static let childCancelled = Code("childCancelled")
        /// The body itself threw a `CancellationError`.
        public static let bodyCancelled = Code("bodyCancelled")
    }
}

extension CancellationCause {
    /// The cause of an operation that was canceled by `cancel()`.
    public static let requested = CancellationCause(code: .requested, message: "The operation was canceled.")

    /// Returns a cause with the code `requested` and your own message.
    ///
    /// - Parameter reason: The message of the cause.
    public static func requested(_ reason: String) -> CancellationCause {
        CancellationCause(code: .requested, message: reason)
    }

    /// The cause of an operation that was canceled because the task that awaited it was canceled.
    public static let taskCancelled = CancellationCause(
        code: .taskCancelled, message: "The operation was canceled because the task that awaited it was canceled.")

    /// The cause of an operation that was canceled because its body threw a `CancellationError`.
    public static let bodyCancelled = CancellationCause(
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
    static func waitsForItself(_ circle: [String]) -> CancellationCause {
        CancellationCause(
            code: .waitsForItself,
            message: "The wait would never end, because each of these operations needs the next one to end: "
                + circle.joined(separator: " \u{2192} ")
                + ". Do not wait for an operation or its group in code that must return before the operation can end.")
    }

    static func shutDown(_ queue: String) -> CancellationCause {
        CancellationCause(
            code: .shutDown, message: "Queue \(queue) was shut down before the operation ended.")
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
