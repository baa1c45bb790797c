// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A task that can end without taking along what another attempt may go on with.
protocol GivingUp: NetworkTask {
    /// Ends it as cancelled, and keeps what it received.
    func giveUp()
}

extension NetworkTask {
    /// Ends the task of an attempt that may be followed by another.
    func endForAttempt() {
        if let task = self as? any GivingUp { task.giveUp() } else { cancel() }
    }
}
