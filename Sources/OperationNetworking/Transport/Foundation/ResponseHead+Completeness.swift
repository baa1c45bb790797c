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
    /// The head as it would be of the whole file, where it is that of a part, or says that nothing is missing.
    func asWhole(length: Int64?) -> ResponseHead {
        guard status == 206 || status == 416 else { return self }
        var fields = headers
        fields.remove("Content-Range")
        fields["Content-Length"] = length.map { "\($0)" }
        return ResponseHead(
            url: url, status: 200, headers: fields, version: version, reason: reason, isDecoded: isDecoded)
    }
}
