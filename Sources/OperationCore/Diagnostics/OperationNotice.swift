// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Something that an operation was asked to do and could not: it changed nothing, and is told instead of trapping.
public struct OperationNotice: Sendable, CustomStringConvertible {
    /// What kind of request it was.
    public let kind: Kind
    /// The operation's name or the name of its type.
    ///
    /// If the notice is not about an operation, the type that reports it.
    public let operation: String
    /// What was asked for, why it changed nothing, and what to do.
    public let message: String

    /// One line for a log.
    public var description: String { "\(operation): \(message) [\(kind)]" }

    /// The kind of a notice.
    public struct Kind: Hashable, Sendable, CustomStringConvertible {
        /// The name of the kind.
        public let description: String
        /// A Boolean value that indicates whether a correct program can cause the notice, by losing a race or because
        /// of the machine on which it runs or the text that it is given.
        public let isHarmless: Bool

        private init(_ name: String, isHarmless: Bool = false) {
            description = name
            self.isHarmless = isHarmless
        }

        /// The operation had a result or an error already.
        public static let finishedTwice = Kind("finishedTwice")
        /// The operation had been started already.
        public static let startedTwice = Kind("startedTwice")
        /// The body finished an operation that had been cancelled in the meantime.
        public static let finishedAfterCancellation = Kind("finishedAfterCancellation", isHarmless: true)
        /// A dependency was refused: it came too late, or would have closed a cycle.
        public static let dependencyRefused = Kind("dependencyRefused")
        /// The last reference to an operation went while it executed.
        public static let releasedUnfinished = Kind("releasedUnfinished")
        /// A body returned without a result.
        public static let noResult = Kind("noResult")
        /// A body waits for the operation, and so many do that it keeps its slot meanwhile.
        ///
        /// Also reported by a queue when 64 bodies have blocked their threads in another way for five seconds while
        /// something else is ready.
        public static let tooManyWaits = Kind("tooManyWaits")
        /// A file or folder is not used because another user of the computer could have written to it.
        public static let untrustedFile = Kind("untrustedFile")
        /// A body waits for the operation, or for its queue to run empty, which cannot happen before that body has returned.
        public static let waitsForItself = Kind("waitsForItself")
        /// A timeout, delay or clock was set after the start.
        public static let timing = Kind("timing")
        /// A condition, category or throttle was set after the start.
        public static let admission = Kind("admission")
        /// libcurl cannot be used on this machine, and `URLSession` sends the requests instead.
        ///
        /// The notice is reported once per process.
        public static let sessionFallback = Kind("sessionFallback", isHarmless: true)
        /// On Linux, a `URLSession` has cookies or credentials of its own, which its requests do not use.
        ///
        /// The notice is reported once for the cookies and once for the credentials of each session.
        public static let sessionStorage = Kind("sessionStorage", isHarmless: true)
        /// A path has a question mark in it, which is sent as a part of the path and begins no query.
        public static let queryInPath = Kind("queryInPath", isHarmless: true)
    }
}

/// Where notices of misuse go: in debug builds to standard error unless you take them, in release builds nowhere.
///
/// A notice never changes what an operation does. Take them in a test to make misuse fail it:
///
/// ```swift
/// OperationDiagnostics.handler = { notice in
///     if !notice.kind.isHarmless { assertionFailure("\(notice)") }
/// }
/// ```
public enum OperationDiagnostics {
    /// Takes the notices, on the thread that caused them.
    ///
    /// Nil prints them in debug builds.
    ///
    /// Without a handler each harmless kind is printed only once in the life of a process.
    public static var handler: (@Sendable (OperationNotice) -> Void)? {
        get { state.withLock { $0.handler } }
        set {
            // The old handler is let go of here, outside the lock.
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

    /// Reports a notice of a type that is not an operation.
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
    /// The operation's name, or else the name of its type, without what it is generic over.
    package var displayName: String {
        if let name, !name.isEmpty { return name }
        return String("\(type(of: self))".prefix { $0 != "<" })
    }
}
