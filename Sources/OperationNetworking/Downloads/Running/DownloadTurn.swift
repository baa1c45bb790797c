// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Whose turn it is with the files of a download: one run after another, in the order in which they came.
struct DownloadTurn: Sendable {
    private var isTaken = false
    private var waiting: [@Sendable () -> Void] = []

    /// Takes the turn; false if another run has it, which passes it on to `begin`.
    mutating func take(_ begin: @escaping @Sendable () -> Void) -> Bool {
        guard isTaken else {
            isTaken = true
            return true
        }
        waiting.append(begin)
        return false
    }

    /// The turn is over; returns what begins the next, outside of the lock.
    mutating func pass() -> (@Sendable () -> Void)? {
        if waiting.isEmpty {
            isTaken = false
            return nil
        }
        return waiting.removeFirst()
    }
}
