// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

extension NetworkEvent {
    /// What becomes of an attempt that failed.
    public struct Decision: Sendable, CustomStringConvertible {
        /// What is done; others may be added.
        public struct Kind: Sendable, Hashable, CustomStringConvertible {
            /// The name, fit for a metric's label.
            public let description: String

            private init(_ name: String) { description = name }

            /// It was the last one.
            public static let fail = Kind("fail")
            /// Another follows.
            public static let again = Kind("again")
            /// Another follows, and this one does not count: it was not to blame.
            public static let replay = Kind("replay")
            /// The operation is put aside until something comes.
            public static let putAside = Kind("putAside")
        }

        /// What is done.
        public let kind: Kind
        /// How long until the next attempt.
        public let pause: Duration?
        /// What is waited for.
        public let waitReason: WaitReason?
        /// Why it was decided so, where a ``Retry`` did.
        public let reason: RetryReason?
        /// Why, in words.
        public let note: String?

        /// Makes one, for tests of observers.
        public init(
            _ kind: Kind, pause: Duration? = nil, waitReason: WaitReason? = nil, reason: RetryReason? = nil,
            note: String? = nil
        ) {
            (self.kind, self.pause, self.waitReason) = (kind, pause, waitReason)
            (self.reason, self.note) = (reason, note)
        }

        init(_ answer: AttemptAnswer) {
            let (kind, pause, wait): (Kind, Duration?, WaitReason?) =
                switch answer.decision {
                case .fail: (.fail, nil, nil)
                case .again(let pause): (.again, pause, nil)
                case .replay(let pause): (.replay, pause, nil)
                case .park(let reason): (.putAside, nil, reason)
                }
            self.init(kind, pause: pause, waitReason: wait, reason: answer.reason, note: answer.note)
        }

        /// The decision in a line.
        public var description: String { note ?? waitReason?.description ?? "\(kind)" }
    }
}
