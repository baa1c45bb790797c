// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A report of a call that had no effect, or of another problem that you should know about.
///
/// OperationKit does not trap when you misuse an operation. The call changes nothing, and OperationKit reports a
/// notice.
public struct OperationNotice: Sendable, CustomStringConvertible {
    /// The kind of notice.
    public let kind: Kind
    /// The name of the operation, or the name of its type if the operation has no name.
    ///
    /// If the notice is not about an operation, this property is the name of the queue, session or type that reports
    /// it.
    public let operation: String
    /// A sentence that describes the problem, its reason and a possible solution.
    public let message: String

    /// A one-line description for a log.
    public var description: String { "\(operation): \(message) [\(kind)]" }

    /// A kind of notice.
    public struct Kind: Hashable, Sendable, CustomStringConvertible {
        /// The name of the kind.
        public let description: String
        /// A Boolean value that indicates whether a correct program can cause a notice of this kind.
        ///
        /// For example, the cause may be a lost race, the machine, or the input of the program.
        public let isHarmless: Bool

        private init(_ name: String, isHarmless: Bool = false) {
            description = name
            self.isHarmless = isHarmless
        }

        /// The operation already had a result or an error when it was finished.
        public static let finishedTwice = Kind("finishedTwice")
        /// The operation was started again, or was started even though it is in a queue.
        public static let startedTwice = Kind("startedTwice")
        /// The operation was finished after it had been canceled.
        public static let finishedAfterCancellation = Kind("finishedAfterCancellation", isHarmless: true)
        /// A dependency was ignored because it was added too late, or because it would have created a cycle.
        public static let dependencyRefused = Kind("dependencyRefused")
        /// The last reference to an operation was released while the operation was executing.
        public static let releasedUnfinished = Kind("releasedUnfinished")
        /// A body returned without a result.
        public static let noResult = Kind("noResult")
        /// Too many bodies already block threads, so a body that waits for the operation keeps its slot.
        ///
        /// A queue also reports this kind if 64 bodies have blocked their threads in another way for five seconds while
        /// other work is ready.
        public static let tooManyWaits = Kind("tooManyWaits")
        /// A file or folder is not used because another user of the computer could have written to it.
        public static let untrustedFile = Kind("untrustedFile")
        /// A body waits for the operation, or for its own queue to become empty, but the wait cannot end before the
        /// body returns.
        public static let waitsForItself = Kind("waitsForItself")
        /// A setting that takes effect only before the start, such as a timeout, a delay or a clock, was changed too
        /// late.
        ///
        /// An observer that is added too late is also reported with this kind.
        public static let timing = Kind("timing")
        /// A condition, a category or a throttle was set after the start, or while the operation asked for admission.
        public static let admission = Kind("admission")
        /// libcurl cannot be used on this machine, and `URLSession` sends the requests instead.
        ///
        /// The notice is reported once per process.
        public static let sessionFallback = Kind("sessionFallback", isHarmless: true)
        /// A `URLSession` on Linux has its own cookies or credentials, which its requests do not use.
        ///
        /// The notice is reported once for the cookies and once for the credentials of each session. A
        /// `BackgroundSession` also reports this kind if it cannot restart a transfer or removes a transfer that no
        /// closure received.
        public static let sessionStorage = Kind("sessionStorage", isHarmless: true)
        /// A path contains a question mark, which is sent as part of the path and does not begin a query.
        public static let queryInPath = Kind("queryInPath", isHarmless: true)
    }
}

/// The destination of all notices in the process.
///
/// By default, debug builds print notices to standard error, and release builds discard them. A notice never changes
/// the behavior of an operation. To make misuse fail a test, set a handler in the test:
///
/// ```swift
/// OperationDiagnostics.handler = { notice in
///     if !notice.kind.isHarmless { assertionFailure("\(notice)") }
/// }
/// ```
public enum OperationDiagnostics {
    /// The closure that receives the notices, or `nil` to print them in debug builds.
    ///
    /// The closure is called on the thread that caused the notice. The default is `nil`. Debug builds then print each
    /// notice, but each harmless kind only once per process.
    public static var handler: (@Sendable (OperationNotice) -> Void)? {
        get { state.withLock { $0.handler } }
        set {
            // The old handler is released here, outside the lock.
            var incoming = newValue
            state.withLock { swap(&$0.handler, &incoming) }
        }
    }

    private struct State {
        var handler: (@Sendable (OperationNotice) -> Void)?
        var printed: Set<OperationNotice.Kind> = []
    }

    private static let state = Locked(State())

    package static func report(
        _ kind: OperationNotice.Kind, by operation: Operation, _ message: @autoclosure () -> String
    ) {
        report(kind, by: operation.displayName, message())
    }

    /// Reports a notice about a type, a queue or a session.
    package static func report(
        _ kind: OperationNotice.Kind, by reporter: @autoclosure () -> String, _ message: @autoclosure () -> String
    ) {
        if let handler {
            handler(OperationNotice(kind: kind, operation: reporter(), message: message()))
            return
        }
        #if DEBUG
            let isNew = state.withLock { !kind.isHarmless || $0.printed.insert(kind).inserted }
            guard isNew else { return }
            let notice = OperationNotice(kind: kind, operation: reporter(), message: message())
            FileHandle.standardError.write(Data("OperationKit: \(notice)\n".utf8))
        #endif
    }
}

extension Operation {
    /// The name of the operation, or the name of its type without generic arguments if the operation has no name.
    package var displayName: String {
        if let name, !name.isEmpty { return name }
        return String("\(type(of: self))".prefix { $0 != "<" })
    }
}
