// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A report of a call that had no effect, or of another problem that you should know about.
///
/// If you misuse an operation, OperationKit usually does not stop the program. Instead, the call has no effect, and
/// OperationKit reports a notice.
public struct OperationNotice: Sendable, CustomStringConvertible {
    /// The kind of notice.
    public let kind: Kind
    /// The name of the operation, or the name of its type if the operation has no name.
    ///
    /// If the notice is not about an operation, this property is the name of the queue, session or type that reports
    /// it.
    public let operation: String
    /// A message that describes the problem and its cause, and a solution if there is one.
    public let message: String

    /// A description of the notice in one line, for a log.
    public var description: String { "\(operation): \(message) [\(kind)]" }

    /// A kind of notice.
    ///
    /// Most kinds that report a mistake in your code have no public name, because you fix the code instead of comparing
    /// the kind.
    public struct Kind: Hashable, Sendable, CustomStringConvertible {
        /// The name of the kind as a string.
        public let description: String
        /// A Boolean value that indicates whether a correct program can cause a notice of this kind.
        ///
        /// A harmless notice reports one of the following: a result or an error that arrived after the operation was
        /// canceled, a limitation of the system, or input that is unusual but valid. Tests can ignore harmless notices.
        public let isHarmless: Bool

        private init(_ name: String, isHarmless: Bool = false) {
            description = name
            self.isHarmless = isHarmless
        }

        /// The program called `finish` for an operation that already had a result or an error.
        package static let finishedTwice = Kind("finishedTwice")
        /// The program started an operation that was already started or is in a queue.
        package static let startedTwice = Kind("startedTwice")
        /// The program called `finish` for an operation that had already been canceled.
        public static let finishedAfterCancellation = Kind("finishedAfterCancellation", isHarmless: true)
        /// The program tried to add a dependency after the operation had started, or a dependency that would create a
        /// cycle.
        package static let dependencyRefused = Kind("dependencyRefused")
        /// The program released the last reference to an operation that was still executing.
        package static let releasedUnfinished = Kind("releasedUnfinished")
        /// The body of an operation returned without finishing the operation.
        package static let noResult = Kind("noResult")
        /// A body waits in `waitUntilFinished()` and keeps its slot in the queue during the wait.
        ///
        /// Normally, a waiting body releases its slot. OperationKit reports this notice if other waiting bodies and
        /// evaluators already block all but one of the ``QueueManager/threadLimit`` threads.
        ///
        /// A queue also reports this kind if at least 64 bodies have blocked their threads for five seconds in calls
        /// that the queue cannot observe, and other operations are ready.
        public static let tooManyWaits = Kind("tooManyWaits")
        /// OperationKit does not use a file or folder, because another user of the computer could have written to it.
        ///
        /// OperationKit also reports this kind if the URL of a cache's folder is not a file URL.
        public static let untrustedFile = Kind("untrustedFile")
        /// A body waits for an operation, its own queue or room in its queue, but the wait cannot end before the body
        /// returns.
        package static let waitsForItself = Kind("waitsForItself")
        /// The program changed a setting, such as a timeout, a delay or a clock, after the operation had started.
        ///
        /// OperationKit also reports this kind if the program adds a network observer to an operation that has begun or
        /// to a group that has ended.
        package static let timing = Kind("timing")
        /// The program set a condition, a category or a throttle after the operation had started or while the operation
        /// checked its start conditions.
        package static let admission = Kind("admission")
        /// OperationKit cannot use the system's libcurl, so `URLSession` sends the requests instead.
        ///
        /// OperationKit reports this notice once per process.
        public static let sessionFallback = Kind("sessionFallback", isHarmless: true)
        /// A `URLSession` on Linux is configured with an `HTTPCookieStorage` or a `URLCredentialStorage`, but
        /// OperationKit uses neither.
        ///
        /// OperationKit reports this notice once for the cookies and once for the credentials of each session. A
        /// `BackgroundSession` also reports this kind if it cannot restart an orphaned transfer, or if it discards the
        /// oldest of more than 1,000 orphans because `onOrphan` is not set.
        public static let sessionStorage = Kind("sessionStorage", isHarmless: true)
        /// The path of a request contains a question mark, which OperationKit sends as part of the path rather than as
        /// the beginning of a query.
        public static let queryInPath = Kind("queryInPath", isHarmless: true)
    }
}

/// A namespace for the handler that receives all notices in the process.
///
/// By default, debug builds print notices to standard error, and release builds discard them. A notice never changes
/// the behavior of an operation. To make a test fail when OperationKit reports a notice that is not harmless, set a
/// handler in the test:
///
/// ```swift
/// OperationDiagnostics.handler = { notice in
///     if !notice.kind.isHarmless { assertionFailure("\(notice)") }
/// }
/// ```
public enum OperationDiagnostics {
    /// A closure that receives all notices in the process.
    ///
    /// The closure is called on the thread on which the problem occurred. The default is `nil`. While the value is
    /// `nil`, debug builds print each notice, but each harmless kind only once per process.
    public static var handler: (@Sendable (OperationNotice) -> Void)? {
        get { state.withLock { $0.handler } }
        set {
            // The old handler is released here, without holding the lock.
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
