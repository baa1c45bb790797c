// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Why an operation that began does nothing for now, and takes no place of its queue.
public struct WaitReason: Sendable, Hashable, CustomStringConvertible {
    /// What is waited for; others may be added.
    public struct Kind: Sendable, Hashable, CustomStringConvertible {
        /// The name of the kind, fit for a metric's label.
        public let description: String

        private init(_ name: String) { description = name }

        /// A time that is not over.
        public static let pause = Kind("pause")
        /// A rate limit, which lets the operation send its next request later.
        public static let rateLimit = Kind("rateLimit")
        /// A credential that somebody else fetches.
        public static let credential = Kind("credential")
        /// A network that is not there.
        public static let network = Kind("network")
        /// Somebody who put it aside, and will let it go on.
        public static let release = Kind("release")
        /// Children: it is a group.
        public static let children = Kind("children")
        /// An operation for which a thread of the body waits.
        public static let operation = Kind("operation")
        /// A run that the operation shares with others: see ``SharedOperations``.
        public static let sharedRun = Kind("sharedRun")
        /// A place of its queue: what it waited for came.
        public static let place = Kind("place")
    }

    /// What is waited for.
    public let kind: Kind
    /// The reason as a part of a sentence: "waiting for the network".
    public let description: String

    package init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    package static let children = WaitReason(.children, "waiting for its children")

    package static let sharedRun = WaitReason(.sharedRun, "waiting for a run that it shares")

    package static let place = WaitReason(.place, "waiting for a place in its queue, to go on")
}

extension WaitReason {
    /// The pause before another attempt of an operation.
    package static func pause(_ pause: Duration, beforeAttempt number: Int) -> WaitReason {
        let tenths = pause.saturatedNanoseconds / 100_000_000
        return WaitReason(.pause, "waiting \(tenths / 10).\(tenths % 10) s before attempt \(number)")
    }
}
