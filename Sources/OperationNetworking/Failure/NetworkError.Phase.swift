// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension NetworkError {
    /// How far a request had come.
    ///
    /// New phases may be added.
    public struct Phase: Hashable, Sendable, CustomStringConvertible {
        /// The name of the phase, fit for a metric's label.
        public let description: String

        /// Makes a phase of your own.
        public init(_ name: String) {
            description = name
        }

        /// The request was looked at, and not handed to a session.
        public static let checking = Phase("checking")
        /// It waited to be started, or for a slot in the session.
        public static let waiting = Phase("waiting")
        /// The connection was being made: name look-up, TCP, proxy, TLS.
        public static let connecting = Phase("connecting")
        /// The request was being sent.
        public static let sending = Phase("sending")
        /// The head of the response was being waited for or received.
        public static let awaitingResponse = Phase("awaitingResponse")
        /// The body of the response was being received.
        public static let receiving = Phase("receiving")
        /// The response was complete, and was validated, decoded or made into a result.
        public static let evaluating = Phase("evaluating")
    }
}
