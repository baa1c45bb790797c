// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import OperationCore

/// A description of the network at one moment: whether it is available, and through which interfaces.
///
/// An available network means that requests can leave this device, but not that a server responds. Only a
/// `ProbeMonitor` checks whether a server responds.
public struct Connectivity: Sendable, Hashable {
    /// A status that indicates whether requests can leave this device.
    ///
    /// Future versions add no cases.
    public enum Status: String, Sendable, Hashable {
        /// The network is available.
        case satisfied
        /// The network is unavailable, and requests would fail.
        case unsatisfied
        /// The status is unknown, and operations treat the network as available.
        case unknown
    }

    /// The status of the network.
    public var status: Status
    /// The known kinds of interfaces through which the network is available, in the order of the system's preference.
    public var interfaces: [Interface]
    /// A Boolean value that indicates whether data is expensive, as on a cellular network.
    ///
    /// The value is `nil` if the system does not provide this information.
    public var isExpensive: Bool?
    /// A Boolean value that indicates whether the user chose to save data, for example in Low Data Mode.
    ///
    /// The value is `nil` if the system does not provide this information.
    public var isConstrained: Bool?
    /// A Boolean value that indicates whether a captive portal, such as a sign-in page, intercepts requests.
    ///
    /// Only a probe detects a captive portal. The default is `false`.
    public var isCaptive = false

    /// Creates a description for a monitor to report.
    public init(
        _ status: Status, interfaces: [Interface] = [], isExpensive: Bool? = nil, isConstrained: Bool? = nil
    ) {
        self.status = status
        self.interfaces = interfaces
        self.isExpensive = isExpensive
        self.isConstrained = isConstrained
    }

    /// An available network.
    public static let satisfied = Connectivity(.satisfied)
    /// An unavailable network.
    public static let unsatisfied = Connectivity(.unsatisfied)
    /// A network whose status is not known.
    public static let unknown = Connectivity(.unknown)

    /// A Boolean value that indicates whether the network is unavailable, so that requests would fail.
    public var isOffline: Bool { status == .unsatisfied }
}

extension Connectivity: CustomStringConvertible {
    /// The status and the other known properties as one line of text.
    public var description: String {
        var parts = [status.rawValue]
        if !interfaces.isEmpty { parts.append("via " + interfaces.map(\.description).joined(separator: ", ")) }
        if isExpensive == true { parts.append("expensive") }
        if isConstrained == true { parts.append("constrained") }
        if isCaptive { parts.append("sign-in required") }
        return parts.joined(separator: ", ")
    }
}

extension Connectivity {
    /// A kind of network interface.
    ///
    /// Future versions may add kinds.
    public struct Interface: Hashable, Sendable, CustomStringConvertible {
        /// The name of the kind, suitable as a metric label.
        public let description: String

        /// Creates a custom kind.
        public init(_ name: String) {
            description = name
        }

        /// A wired network.
        public static let wired = Interface("wired")
        /// A Wi-Fi network.
        public static let wifi = Interface("wifi")
        /// A cellular network.
        public static let cellular = Interface("cellular")
        /// A tunnel, such as a VPN.
        public static let tunnel = Interface("tunnel")
        /// Another kind of interface, or an unknown kind.
        public static let other = Interface("other")
    }
}

/// An object that observes whether the network is available.
///
/// ```swift
/// func follow(_ monitor: any ConnectivityMonitor) async {
///     for await connectivity in monitor.updates {
///         print(connectivity.isOffline ? "offline" : "online")
///     }
/// }
/// ```
///
/// ``SystemConnectivity/shared`` uses the network information of the system. `ProbeMonitor` sends requests to a
/// server. `CombinedConnectivity` combines both. To implement your own monitor, store its state in a
/// ``ConnectivityBoard``.
public protocol ConnectivityMonitor: AnyObject, Sendable {
    /// The current state of the network.
    var connectivity: Connectivity { get }

    /// Calls a closure with the current state of the network, and again whenever the state changes.
    ///
    /// The calls never overlap, and each call passes a state that differs from the state of the previous call. If a
    /// change is reverted before its call begins, the monitor skips that call. The last call always reports the last
    /// change. The first call happens within this method. Later calls happen on the monitor's thread and must return
    /// quickly.
    ///
    /// The observation ends when you cancel or release the returned token. The token keeps a strong reference to the
    /// monitor.
    ///
    /// - Parameter body: The closure to call with each state.
    /// - Returns: A token that ends the observation.
    func observe(_ body: @escaping @Sendable (Connectivity) -> Void) -> ConnectivityObservation
}

extension ConnectivityMonitor {
    /// The states of the network, beginning with the current one.
    ///
    /// A slow reader receives only the latest state. The sequence does not end. To stop, leave the loop or cancel its
    /// task.
    public var updates: AsyncStream<Connectivity> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let observation = observe { continuation.yield($0) }
            continuation.onTermination = { _ in observation.cancel() }
        }
    }
}

/// An error that explains why a monitor has no information about the network, and how to fix the problem.
public struct ConnectivityMonitorError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The error number of the system (`errno`).
    public let number: Int32
    /// A sentence that describes the problem and its solution, suitable to show to a user.
    public let message: String

    init(_ number: Int32, _ message: String) {
        self.number = number
        self.message = message
    }

    /// The message of the error.
    public var description: String { message }
}

/// A token that keeps an observation of a monitor active until you cancel or release the token.
public final class ConnectivityObservation: Sendable {
    private let end: Locked<(@Sendable () -> Void)?>

    /// Creates a token.
    ///
    /// - Parameter end: A closure that the token calls once, when you cancel or release the token.
    public init(_ end: @escaping @Sendable () -> Void) {
        self.end = Locked(end)
    }

    deinit { cancel() }

    /// Ends the observation.
    ///
    /// No call of the closure begins after this method returns. A call that began earlier on another thread may still
    /// be running.
    public func cancel() {
        end.withLock { $0.take() }?()
    }
}

/// A store that holds the state of a monitor and notifies its observers.
///
/// A custom monitor keeps a board and forwards the two requirements of ``ConnectivityMonitor`` to it:
///
/// ```swift
/// final class MyMonitor: ConnectivityMonitor {
///     private let board = ConnectivityBoard(.unknown)
///
///     var connectivity: Connectivity { board.connectivity }
///
///     func observe(_ body: @escaping @Sendable (Connectivity) -> Void) -> ConnectivityObservation {
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

    /// Creates a board with an initial state.
    public init(_ connectivity: Connectivity) {
        state = Locked(State(present: connectivity))
    }

    /// The last state that was written.
    public var connectivity: Connectivity { state.withLock { $0.present } }

    /// The number of observers, for tests.
    package var listenerCount: Int { state.withLock { $0.listeners.count } }

    /// Stores the current state and notifies the observers on the current thread.
    public func write(_ connectivity: Connectivity) {
        let listeners: [Listener] = state.withLock { state in
            guard state.present != connectivity else { return [] }
            state.present = connectivity
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.look(at: self) }
    }

    /// Calls a closure with the current state and with every later state.
    ///
    /// The returned token keeps a strong reference to the monitor.
    ///
    /// - Parameters:
    ///   - monitor: The monitor that owns this board.
    ///   - body: The closure to call with each state.
    /// - Returns: A token that ends the observation.
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
            // The closure's contents are released here, outside the lock.
            _ = state.withLock { $0.listeners.removeValue(forKey: number) }
            listener.end()
            withExtendedLifetime(monitor) {}
        }
        listener.look(at: self)
        return observation
    }

    /// An observer that one thread at a time notifies.
    ///
    /// If the state changes meanwhile, that thread checks it again.
    private final class Listener: Sendable {
        private struct State {
            var body: (@Sendable (Connectivity) -> Void)?
            var told: Connectivity?
            var telling = RepeatFlag()
        }

        private let state: Locked<State>

        init(_ body: @escaping @Sendable (Connectivity) -> Void) {
            state = Locked(State(body: body))
        }

        func end() {
            let body = state.withLock { $0.body.take() }
            withExtendedLifetime(body) {}
        }

        /// Reads the state after the notifying thread is chosen, so that two threads cannot report states in the wrong
        /// order.
        func look(at board: ConnectivityBoard) {
            state.runRounds(of: \.telling) {
                let present = board.connectivity
                let body: (@Sendable (Connectivity) -> Void)? = state.withLock { state in
                    guard state.told != present else { return nil }
                    state.told = present
                    return state.body
                }
                body?(present)
            }
        }
    }
}

/// A monitor that uses the network information of the system, from netlink on Linux and `NWPathMonitor` on Apple
/// platforms.
///
/// On watchOS and other platforms, the status is always ``Connectivity/Status/unknown``, so that operations send their
/// requests. All policies without their own monitor share the same instance.
public final class SystemConnectivity: ConnectivityMonitor {
    /// The shared instance, which starts to observe the network on first access.
    public static let shared = SystemConnectivity()

    private let monitor: any ConnectivityMonitor

    private init() {
        #if os(Linux)
            monitor = NetlinkMonitor()
        #elseif canImport(Network) && !os(watchOS)
            monitor = PathMonitor()
        #else
            monitor = UnknownConnectivity()
        #endif
    }

    /// The current state of the network.
    public var connectivity: Connectivity { monitor.connectivity }

    /// The error that explains why the monitor has no current information, or `nil` if there is no error.
    public var failure: ConnectivityMonitorError? {
        #if os(Linux)
            (monitor as? NetlinkMonitor)?.failure
        #else
            nil
        #endif
    }

    /// Calls a closure with the current state of the network, and again whenever the state changes.
    ///
    /// The first call happens within this method. Later calls happen on the queue of the system's monitor.
    public func observe(_ body: @escaping @Sendable (Connectivity) -> Void) -> ConnectivityObservation {
        monitor.observe(body)
    }
}

extension ConnectivityMonitor where Self == SystemConnectivity {
    /// The system's monitor.
    public static var system: SystemConnectivity { .shared }
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

    /// A monitor for Apple platforms that uses `NWPathMonitor`.
    ///
    /// The monitor is not available on watchOS. For most apps on a physical watch, `NWPathMonitor` reports no network,
    /// although requests succeed (Apple's technical note TN3135).
    public final class PathMonitor: ConnectivityMonitor, @unchecked Sendable {
        // Sendable: the monitor is complete after `init`, and canceling it is safe on any thread.
        private let board = ConnectivityBoard(.unknown)
        private let monitor: NWPathMonitor

        /// Creates a monitor for all interfaces.
        public init() {
            monitor = NWPathMonitor()
            monitor.pathUpdateHandler = { [board] path in board.write(Connectivity(path)) }
            monitor.start(queue: DispatchQueue(label: "OperationKit.PathMonitor"))
        }

        deinit { monitor.cancel() }

        /// The current state of the network.
        public var connectivity: Connectivity { board.connectivity }

        /// Calls a closure with the current state of the network, and again whenever the state changes.
        ///
        /// The first call happens within this method. Later calls happen on the monitor's queue.
        public func observe(_ body: @escaping @Sendable (Connectivity) -> Void) -> ConnectivityObservation {
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
