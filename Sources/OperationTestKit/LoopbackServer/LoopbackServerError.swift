// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Why a ``LoopbackServer`` could not start.
public struct LoopbackServerError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of the failure.
    public let code: Code
    /// The address that was to be listened on.
    public let address: LoopbackAddress
    /// The number of the system's error (`errno`), or 0.
    public let systemErrorNumber: Int32

    /// The failure as a sentence that says what to do.
    public var description: String {
        let number = systemErrorNumber == 0 ? "" : " (system error \(systemErrorNumber))"
        return "A loopback server cannot listen on \(address): \(code.explanation)\(number)"
    }

    /// The kind of a failure.
    ///
    /// New kinds may be added; compare, and keep a way for those you do not know.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the kind.
        public let description: String
        let explanation: String

        /// Somebody listens there already.
        public static let addressInUse = Code(
            description: "addressInUse",
            explanation: "somebody else does already. Use port 0, which chooses a free port, or another path.")
        /// The machine has no such address.
        public static let addressNotAvailable = Code(
            description: "addressNotAvailable",
            explanation: "this machine has no such address. Listen on .ipv4 only, or switch IPv6 on.")
        /// The path of a socket is empty or too long for the system.
        public static let invalidPath = Code(
            description: "invalidPath",
            explanation: "the path is empty, too long for a socket (about 100 bytes), or its directory is missing. "
                + "Choose a short path in an existing directory.")
        /// The process has too many descriptors open.
        public static let tooManyOpenFiles = Code(
            description: "tooManyOpenFiles",
            explanation: "too many files are open. Stop servers that are not needed, or raise the limit (ulimit -n).")
        /// The process may not listen there.
        public static let permissionDenied = Code(
            description: "permissionDenied",
            explanation: "the program lacks the permission. Use port 0, or another path.")
        /// Anything else; the system's number says more.
        public static let systemFailed = Code(
            description: "systemFailed", explanation: "the system refused. Look up the error's number.")
    }
}
