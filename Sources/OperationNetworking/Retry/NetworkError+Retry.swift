// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

extension NetworkError {
    /// Why there was no other attempt: nil if the operation was not to repeat any, if the attempt is not the last one, or
    /// where others decided so: the error of a wait for the network, of a refresh, or of a credential that was rejected.
    public var retryEnd: RetryReason? {
        get { details?.retryEnd }
        set { change { $0.retryEnd = newValue } }
    }
}

extension AttemptRecord: CustomStringConvertible {
    /// The attempt in a line, for a log.
    public var description: String {
        let answer = status.map { " \($0)" } ?? ""
        let next = pause.map { ", again after \($0.inSeconds)" } ?? ""
        let time = "from \(began.inSeconds) on, for \(duration.inSeconds)"
        return "attempt \(number): \(code)\(answer) while \(phase), \(time)\(next)"
    }
}

extension Duration {
    /// As a number, for Foundation.
    var seconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}
