// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How long a file must be, or may be.
package struct DownloadLimits: Hashable, Sendable {
    package var expected: Int64?
    package var maximum: Int64?

    package init(expected: Int64? = nil, maximum: Int64? = nil) {
        self.expected = expected
        self.maximum = maximum
    }

    /// What is wrong with a file of that length.
    func error(forTotal total: Int64) -> NetworkError? {
        if let expected, total != expected { return unexpected("The file has \(total) bytes, not \(expected).") }
        return error(forReceived: total)
    }

    /// What is wrong once so many bytes of a file were received.
    func error(forReceived count: Int64) -> NetworkError? {
        if let expected, count > expected {
            return unexpected("The file has more than the expected \(expected) bytes.")
        }
        if let maximum, count > maximum {
            return NetworkError(
                code: .bodyTooLarge, phase: .receiving,
                message: "The file has more than \(maximum) bytes. Raise maximumLength in the options.")
        }
        return nil
    }

    private func unexpected(_ message: String) -> NetworkError {
        NetworkError(code: .unexpectedLength, phase: .receiving, message: message)
    }
}
