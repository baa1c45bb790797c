// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// That somebody is told of the network: to be kept for as long as that shall be so.
public final class ConnectivityObservation: Sendable {
    private let end: Locked<(@Sendable () -> Void)?>

    /// Makes a token that calls `end` once, when it is cancelled or let go of.
    public init(_ end: @escaping @Sendable () -> Void) {
        self.end = Locked(end)
    }

    deinit { cancel() }

    /// Ends it: no call begins after this one has returned, but one that another thread had begun may be under way.
    public func cancel() {
        end.withLock { $0.take() }?()
    }
}
