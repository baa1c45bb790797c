// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import OperationCore

/// A description of the network's availability and interfaces at one moment.
///
/// If the network is available, requests can leave this device, but servers might still not respond. To check whether a
/// server responds, use a `ProbeMonitor`.
public struct Connectivity: Sendable, Hashable {
    /// A status that indicates whether requests can leave this device.
    ///
    /// Only a major version may add cases.
    public enum Status: Sendable, Hashable {
        /// The network is available.
        case satisfied
        /// The network is unavailable, so requests cannot leave this device.
        case unsatisfied
        /// The monitor does not know the status of the network, so operations treat the network as available.
        case unknown
    }

    /// The status of the network.
    public var status: Status
    /// The kinds of interfaces through which the network is available.
    ///
    /// On Linux, the kinds are in the system's order of preference.
    public var interfaces: [Interface]
    /// A Boolean value that indicates whether data transfer is expensive, as on a cellular network.
    ///
    /// The value is `nil` if the system does not provide this information.
    public var isExpensive: Bool?
    /// A Boolean value that indicates whether the user wants to reduce the use of data, for example with Low Data Mode.
    ///
    /// The value is `nil` if the system does not provide this information.
    public var isConstrained: Bool?
    /// A Boolean value that indicates whether a captive portal, such as a sign-in page, intercepts requests.
    ///
    /// Of the monitors in OperationKit, only `ProbeMonitor` and `CombinedConnectivity` can detect a captive portal. The
    /// default is `false`.
    public var isCaptive = false

    /// Creates a description of the network for a custom monitor to report.
    public init(
        _ status: Status, interfaces: [Interface] = [], isExpensive: Bool? = nil, isConstrained: Bool? = nil
    ) {
        self.status = status
        self.interfaces = interfaces
        self.isExpensive = isExpensive
        self.isConstrained = isConstrained
    }

    /// A description of an available network, without further information.
    public static let satisfied = Connectivity(.satisfied)
    /// A description of an unavailable network, without further information.
    public static let unsatisfied = Connectivity(.unsatisfied)
    /// A description of a network with an unknown status.
    public static let unknown = Connectivity(.unknown)

    /// A Boolean value that indicates whether the network is unavailable.
    package var isOffline: Bool { status == .unsatisfied }
}

extension Connectivity: CustomStringConvertible {
    /// A line of text that contains the status and the other known properties.
    public var description: String {
        var parts = ["\(status)"]
        if !interfaces.isEmpty { parts.append("via " + interfaces.map(\.description).joined(separator: ", ")) }
        if isExpensive == true { parts.append("expensive") }
        if isConstrained == true { parts.append("constrained") }
        if isCaptive { parts.append("sign-in required") }
        return parts.joined(separator: ", ")
    }
}

extension Connectivity {
    /// A kind of network interface, such as Wi-Fi.
    ///
    /// Future versions may add kinds.
    public struct Interface: Hashable, Sendable, CustomStringConvertible {
        /// The name of the interface kind, which you can use as a metric label.
        public let description: String

        private init(_ name: String) { description = name }

        /// The interface of a wired network.
        public static let wired = Interface("wired")
        /// The interface of a Wi-Fi network.
        public static let wifi = Interface("wifi")
        /// The interface of a cellular network.
        public static let cellular = Interface("cellular")
        /// The interface of a tunnel, such as a VPN.
        public static let tunnel = Interface("tunnel")
        /// An interface of another kind or of an unknown kind.
        public static let other = Interface("other")
    }
}

/// An object that observes whether the network is available.
///
/// ```swift
/// func follow(_ monitor: any ConnectivityMonitor) async {
///     for await connectivity in monitor.updates {
///         print(connectivity.status == .unsatisfied ? "offline" : "online")
///     }
/// }
/// ```
///
/// ``SystemConnectivity`` uses the system's network information. In the OperationExporters module, `ProbeMonitor` sends
/// requests to a server, and `CombinedConnectivity` combines a system monitor with a `ProbeMonitor`. To implement your
/// own monitor, use a ``ConnectivityBoard`` to store the monitor's state.
public protocol ConnectivityMonitor: AnyObject, Sendable {
    /// The current state of the network.
    var connectivity: Connectivity { get }

    /// Calls a closure with the current state of the network, and again whenever the state changes.
    ///
    /// The method calls the closure with the current state before it returns. Later calls are made on a thread of the
    /// monitor, so the closure must return quickly.
    ///
    /// The calls never overlap. Each call passes a state that differs from the state in the previous call. If several
    /// changes follow each other quickly, the monitor can skip states, but it always reports the last state.
    ///
    /// The returned token keeps a strong reference to the monitor.
    ///
    /// - Parameter body: The closure to call with each state.
    /// - Returns: A token that ends the observation when you cancel or release the token.
    func observe(_ body: @escaping @Sendable (Connectivity) -> Void) -> ConnectivityObservation
}

extension ConnectivityMonitor {
    /// An asynchronous sequence of network states that begins with the current state.
    ///
    /// If the state changes several times while your code handles an element, the sequence provides only the latest
    /// state. The sequence never ends. To stop observing, leave the `for await` loop or cancel the Swift task that
    /// contains the loop.
    public var updates: AsyncStream<Connectivity> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let observation = observe { continuation.yield($0) }
            continuation.onTermination = { _ in observation.cancel() }
        }
    }
}

/// A token that ends the observation of a monitor when you cancel or release the token.
public final class ConnectivityObservation: Sendable {
    private let end: Locked<(@Sendable () -> Void)?>

    /// Creates a token that calls a closure when the observation ends.
    ///
    /// - Parameter end: A closure that the token calls once, when you cancel or release the token.
    public init(_ end: @escaping @Sendable () -> Void) {
        self.end = Locked(end)
    }

    deinit { cancel() }

    /// Ends the observation.
    ///
    /// After this method returns, the monitor does not begin another call to the observer's closure. A call that began
    /// earlier on another thread might still be running.
    public func cancel() {
        end.withLock { $0.take() }?()
    }
}

/// An object that stores the state of a custom monitor and notifies the monitor's observers.
///
/// To implement the two requirements of ``ConnectivityMonitor``, a custom monitor calls a board:
///
/// ```swift
/// final class MyMonitor: ConnectivityMonitor {
///     private let board = ConnectivityBoard(.unknown)
///
///     var connectivity: Connectivity { board.connectivity }
///
///     func observe(_ body: @escaping @Sendable (Connectivity) -> Void)
///         -> ConnectivityObservation
///     {
///         board.observe(for: self, body)
///     }
///
///     func cableWasPulled() { board.write(.unsatisfied) }
/// }
/// ```
public final class ConnectivityBoard: Sendable {
    private struct State {
        var present: Connectivity
        var listeners: [UInt64: Listener] = [:]
        var lastNumber: UInt64 = 0
    }

    private let state: Locked<State>

    /// Creates a board with the initial state of the network.
    public init(_ connectivity: Connectivity) {
        state = Locked(State(present: connectivity))
    }

    /// The state that you last passed to the board.
    public var connectivity: Connectivity { state.withLock { $0.present } }

    /// The number of observers, for tests.
    package var listenerCount: Int { state.withLock { $0.listeners.count } }

    /// Stores the state of the network and, if the state has changed, notifies the observers.
    ///
    /// The method calls each observer on the current thread. However, if another thread is already calling the
    /// observer, that thread calls the observer again with the new state.
    public func write(_ connectivity: Connectivity) {
        let listeners: [Listener] = state.withLock { state in
            guard state.present != connectivity else { return [] }
            state.present = connectivity
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.look(at: self) }
    }

    /// Calls a closure with the current state of the network, and again whenever the state changes.
    ///
    /// The returned token keeps a strong reference to the monitor.
    ///
    /// - Parameters:
    ///   - monitor: The monitor that owns this board.
    ///   - body: The closure to call with each state.
    /// - Returns: A token that ends the observation when you cancel or release the token.
    public func observe(
        for monitor: any ConnectivityMonitor, _ body: @escaping @Sendable (Connectivity) -> Void
    ) -> ConnectivityObservation {
        let listener = Listener(body)
        let number = state.withLock { state in
            state.lastNumber += 1
            state.listeners[state.lastNumber] = listener
            return state.lastNumber
        }
        let observation = ConnectivityObservation { [self] in
            // The closure's contents are released here, without holding the lock.
            _ = state.withLock { $0.listeners.removeValue(forKey: number) }
            listener.end()
            extendLifetime(monitor)
        }
        listener.look(at: self)
        return observation
    }

    /// An observer that one thread at a time notifies.
    ///
    /// If the state changes in the meantime, that thread checks it again.
    private final class Listener: Sendable {
        private struct State {
            var body: (@Sendable (Connectivity) -> Void)?
            var reported: Connectivity?
            var notifying = RepeatFlag()
        }

        private let state: Locked<State>

        init(_ body: @escaping @Sendable (Connectivity) -> Void) {
            state = Locked(State(body: body))
        }

        func end() {
            state.release { $0.body.take() }
        }

        /// Reads the state after the notifying thread is chosen, so that two threads cannot report states in the wrong
        /// order.
        func look(at board: ConnectivityBoard) {
            state.runRounds(of: \.notifying) {
                let present = board.connectivity
                let body: (@Sendable (Connectivity) -> Void)? = state.withLock { state in
                    guard state.reported != present else { return nil }
                    state.reported = present
                    return state.body
                }
                body?(present)
            }
        }
    }
}

/// A monitor that uses the system's network information.
///
/// The information comes from netlink on Linux, and from `NWPathMonitor` on Apple platforms other than watchOS.
///
/// On all other platforms, the status is always ``Connectivity/Status/unknown``, so operations send their requests
/// without waiting. By default, an ``OfflineWaiting`` uses the shared instance ``ConnectivityMonitor/system``.
public final class SystemConnectivity: ConnectivityMonitor {
    /// The shared instance, which starts to observe the network on first access.
    package static let shared = SystemConnectivity()
    fileprivate static let sharedForAnyRoute = SystemConnectivity(needsDefaultRoute: false)

    private let monitor: any ConnectivityMonitor

    private init(needsDefaultRoute: Bool = true) {
        #if os(Linux)
            monitor = NetlinkMonitor(needsDefaultRoute ? .defaultRoute : .anyRoute)
        #elseif canImport(Network) && !os(watchOS)
            monitor = PathMonitor()
        #else
            monitor = UnknownConnectivity()
        #endif
    }

    /// The current state of the network.
    public var connectivity: Connectivity { monitor.connectivity }

    /// A message that explains why the monitor has no current network information and how to fix the problem, or `nil`
    /// if there is no problem.
    ///
    /// On platforms other than Linux, the value is always `nil`.
    public var failure: String? {
        #if os(Linux)
            (monitor as? NetlinkMonitor)?.failure
        #else
            nil
        #endif
    }

    /// Calls a closure with the current state of the network, and again whenever the state changes.
    ///
    /// The method calls the closure with the current state before it returns. Later calls are made on the queue of the
    /// system's monitor.
    public func observe(_ body: @escaping @Sendable (Connectivity) -> Void) -> ConnectivityObservation {
        monitor.observe(body)
    }
}

extension ConnectivityMonitor where Self == SystemConnectivity {
    /// The shared monitor that uses the system's network information.
    public static var system: SystemConnectivity { .shared }

    /// A shared monitor for networks without internet access, for example in a laboratory.
    ///
    /// On Linux, the network is available if the system has a route to any other computer, even without a default
    /// route. On other platforms, the monitor works like ``system``.
    public static var anyRoute: SystemConnectivity { .sharedForAnyRoute }
}

#if !os(Linux) && (!canImport(Network) || os(watchOS))
    /// A monitor without any information about the network.
    private final class UnknownConnectivity: ConnectivityMonitor {
        private let board = ConnectivityBoard(.unknown)

        var connectivity: Connectivity { board.connectivity }

        func observe(_ body: @escaping @Sendable (Connectivity) -> Void) -> ConnectivityObservation {
            board.observe(for: self, body)
        }
    }
#endif

#if canImport(Network) && !os(watchOS)
    import Network

    /// A monitor for Apple platforms that uses network information from `NWPathMonitor`.
    ///
    /// The monitor is not available on watchOS. On a physical watch, `NWPathMonitor` reports to most apps that there is
    /// no network, even though requests succeed (see Apple's technical note TN3135).
    package final class PathMonitor: ConnectivityMonitor, @unchecked Sendable {
        // Sendable: the monitor is complete after `init`, and canceling it is safe on any thread.
        private let board = ConnectivityBoard(.unknown)
        private let monitor: NWPathMonitor

        /// Creates a monitor that observes all network interfaces.
        package init() {
            monitor = NWPathMonitor()
            monitor.pathUpdateHandler = { [board] path in board.write(Connectivity(path)) }
            monitor.start(queue: DispatchQueue(label: "OperationKit.PathMonitor"))
        }

        deinit { monitor.cancel() }

        /// The current state of the network.
        package var connectivity: Connectivity { board.connectivity }

        /// Calls a closure with the current state of the network, and again whenever the state changes.
        ///
        /// The method calls the closure with the current state before it returns. Later calls are made on the monitor's
        /// queue.
        package func observe(_ body: @escaping @Sendable (Connectivity) -> Void) -> ConnectivityObservation {
            board.observe(for: self, body)
        }
    }

    extension Connectivity {
        /// Creates a description from a path.
        ///
        /// A path that requires a connection first (such as a VPN on demand) counts as available, because a request
        /// establishes the connection.
        fileprivate init(_ path: NWPath) {
            let kinds: [(NWInterface.InterfaceType, Interface)] = [
                (.wiredEthernet, .wired), (.wifi, .wifi), (.cellular, .cellular), (.other, .other),
            ]
            self.init(
                path.status == .unsatisfied ? .unsatisfied : .satisfied,
                interfaces: kinds.filter { path.usesInterfaceType($0.0) }.map(\.1), isExpensive: path.isExpensive,
                isConstrained: path.isConstrained)
        }
    }
#endif
