// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension NetworkError {
    /// An error about the wait itself.
    ///
    /// - Parameter failure: What the operation waited after; nil if nothing had been sent.
    static func offline(_ code: Code, _ policy: OfflinePolicy, after failure: NetworkError?) -> NetworkError {
        let message =
            switch code {
            case .offlineTooLong:
                "The network did not return within \(policy.longestWait ?? .zero). Check it and try again, or allow "
                    + "more (longestWait)."
            case .offlineTooOften:
                "The network came and went, and the operation waited for it \(policy.mostWaits) times. Allow more "
                    + "(mostWaits), or try again when it is steady."
            case .tooManyOffline:
                "As many operations wait for the network as may. Allow more (the lot's capacity), or try again later."
            case .bodyNotRepeatable:
                "The network went while the request was being sent, and its body can be read only once. Send data or a "
                    + "file, or a stream that can be made anew. The request had failed so: \(failure?.message ?? "")"
            default: "The network is gone. Check it and try again."
            }
        var error = NetworkError(
            code: code, phase: failure?.phase ?? .waiting, message: message, request: failure?.request,
            underlying: failure?.underlying)
        if let failure {
            error.isUnsent = failure.isUnsent
            error.status = failure.status
            error.cause = failure
        }
        return error
    }

    /// Whether it may have come of a network that was gone.
    var isAboutNetwork: Bool {
        isAboutWaiting || OfflineRule.standard.contains { $0.code == codeOfRefresh ?? code }
    }

    /// Whether it is one of those.
    var isAboutWaiting: Bool { [.offline, .offlineTooLong, .offlineTooOften, .tooManyOffline].contains(code) }
}
