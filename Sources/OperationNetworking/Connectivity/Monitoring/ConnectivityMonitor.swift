// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Watches whether the network is there.
///
/// ```swift
/// func follow(_ monitor: any ConnectivityMonitor) async {
///     for await connectivity in monitor.updates {
///         print(connectivity.isOffline ? "offline" : "online")
///     }
/// }
/// ```
///
/// ``SystemConnectivity/shared`` is the one of the system; ``ProbeMonitor`` asks a server; ``CombinedConnectivity``
/// puts both together. To make one of your own, keep what you know in a ``ConnectivityBoard``.
public protocol ConnectivityMonitor: AnyObject, Sendable {
    /// What is known now.
    var connectivity: Connectivity { get }

    /// Calls `body` with what is known now, and whenever that has changed.
    ///
    /// Never two calls at once, and each with something else than the one before. A change that is over before its call
    /// could be made is left out; the last call is always about the last change. The first call is made here, the
    /// others on the monitor's thread: they must return soon. It ends when the token is cancelled or let go of; the
    /// token keeps the monitor.
    func observe(_ body: @escaping @Sendable (Connectivity) -> Void) -> ConnectivityObservation
}

extension ConnectivityMonitor {
    /// What is known, the present state first and then each that is another.
    ///
    /// A reader that is slow gets the last state, and not those before. The sequence has no end; leave the loop, or
    /// cancel its task.
    public var updates: AsyncStream<Connectivity> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let observation = observe { continuation.yield($0) }
            continuation.onTermination = { _ in observation.cancel() }
        }
    }
}
