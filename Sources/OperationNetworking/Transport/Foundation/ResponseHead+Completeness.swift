// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension ResponseHead {
    /// What is wrong with a body of so many bytes, as far as the head says how many there are to be.
    package func shortfall(of count: Int64, for request: NetworkRequest) -> NetworkError? {
        guard request.method != "HEAD", status != 204, status != 304, let expected = expectedLength, count < expected
        else { return nil }
        return NetworkError(
            code: .truncatedBody, phase: .receiving,
            message: "The connection ended before the body was complete. Try again.")
    }
}
