// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

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
