// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

extension NetworkError {
    /// All that is known, in several lines, for a person who looks for the reason.
    ///
    /// - Parameter showingBody: Whether the beginning of the body is shown, which may have anything in it.
    public func report(showingBody: Bool = false) -> String {
        let isEarly = phase == .checking || phase == .waiting || phase == .connecting
        let extent = !isUnsent ? "" : isEarly ? ", nothing was sent" : ", the server did not process it"
        var lines = [message, "  code: \(code), while \(phase)\(extent)"]
        if let request { lines.append("  request: \(request)") }
        if let status { lines.append("  status: \(status)") }
        if let apiError { lines.append("  the server's own error: \(type(of: apiError))") }
        if let cause { lines.append("  cause: \(Self.text(of: cause))") }
        if let underlying { lines.append("  underlying: \(underlying)") }
        if let retryAfter { lines.append("  the server asks to wait: \(retryAfter.inSeconds)") }
        if let retryEnd { lines.append("  not sent again: \(retryEnd)") }
        for attempt in attempts { lines.append("  \(attempt)") }
        if let bodyPrefix {
            let text = showingBody ? String(bytes: bodyPrefix, encoding: .utf8) : nil
            lines.append("  body: \(text?.indentedPrintable ?? "\(bodyPrefix.count) bytes")")
        }
        return lines.joined(separator: "\n")
    }

    /// What can be told of an error without the values that it was about.
    private static func text(of cause: any Error) -> String {
        switch cause {
        case is DecodingError: "DecodingError"
        case let error as any LocalizedError: error.errorDescription?.printable() ?? "\(type(of: cause))"
        default: "\(type(of: cause))"
        }
    }
}
