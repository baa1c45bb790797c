// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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
        /// The operation had its outcome already when it was cancelled.
        public static let cancelledAfterEnd = Kind("cancelledAfterEnd", isHarmless: true)
        /// A dependency was refused: it came too late, or would have closed a cycle.
        public static let dependencyRefused = Kind("dependencyRefused")
        /// The last reference to an operation went while it executed.
        public static let releasedUnfinished = Kind("releasedUnfinished")
        /// A body returned without a result.
        public static let noResult = Kind("noResult")
        /// A body waits for the operation, and so many do that it keeps its slot meanwhile.
        public static let tooManyWaits = Kind("tooManyWaits")
        /// A file or folder is not used because another user of the computer could have written to it.
        public static let untrustedFile = Kind("untrustedFile")
        /// A body waits for the operation, which cannot end before that body has returned.
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
