// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension NetworkEvent {
    /// What happened; others may be added.
    public struct Kind: Sendable, Hashable, CustomStringConvertible {
        /// The name of the kind.
        public let description: String

        private init(_ name: String) { description = name }

        /// The operation began.
        public static let operationBegan = Kind("operationBegan")
        /// The preparation of an attempt began.
        public static let attemptBegan = Kind("attemptBegan")
        /// The request is ready and held back: until there is a credential for it, or a network.
        public static let held = Kind("held")
        /// What it was held back for came: the request is made anew.
        public static let wentOn = Kind("wentOn")
        /// The request of the attempt, as the operation made it, is about to be handed to the session.
        public static let sending = Kind("sending")
        /// The session sends a request: the first of the attempt, or what follows from a redirect or a challenge.
        ///
        /// It has the fields that the session adds to it, such as cookies.
        ///
        /// A session that does no such things (`CurlSession` by itself, one of yours) does not tell of hops.
        public static let hopBegan = Kind("hopBegan")
        /// The head of a response came that is not the answer: of a redirect that is followed, a challenge that is answered, a
        /// question whether what the cache keeps is still good, a part of a file that does not fit.
        public static let leftBehind = Kind("leftBehind")
        /// That request got its response, or will get none.
        public static let hopEnded = Kind("hopEnded")
        /// All of the request's body was handed over to be sent; not told of a body whose length is not known before.
        public static let bodySent = Kind("bodySent")
        /// The head of the response came: of the answer, not of a redirect that is followed.
        ///
        /// Of a download it is told once its file is ready to be written, and again of each further part that is asked for.
        public static let responded = Kind("responded")
        /// The attempt is over.
        public static let attemptEnded = Kind("attemptEnded")
        /// It was decided what becomes of an attempt that failed; told only where somebody has a say about that.
        public static let decided = Kind("decided")
        /// The operation was suspended.
        public static let suspended = Kind("suspended")
        /// The operation was resumed.
        public static let resumed = Kind("resumed")
        /// The operation has its outcome: the last event.
        public static let operationEnded = Kind("operationEnded")
    }

    /// How an attempt or an operation ended; others may be added.
    public struct Ending: Sendable, Hashable, CustomStringConvertible {
        /// The name, fit for a metric's label.
        public let description: String

        private init(_ name: String) { description = name }

        /// There is a result.
        public static let success = Ending("success")
        /// It failed.
        public static let failure = Ending("failure")
        /// It was cancelled.
        public static let cancelled = Ending("cancelled")
        /// The request of the attempt was not sent: what it was made with was out of date when its turn came.
        public static let takenBack = Ending("takenBack")
    }
}
