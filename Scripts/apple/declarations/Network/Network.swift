// Our declarations of Network: the monitor of network paths.
// https://developer.apple.com/documentation/network

import Dispatch

// https://developer.apple.com/documentation/network/nwinterface
public struct NWInterface: Hashable, CustomDebugStringConvertible, Sendable {
    // https://developer.apple.com/documentation/network/nwinterface/interfacetype
    public enum InterfaceType: Sendable {
        case other
        case wifi
        case cellular
        case wiredEthernet
        case loopback
    }

    public let type: NWInterface.InterfaceType
    public let name: String
    public let index: Int

    public var debugDescription: String { fatalError() }
    public static func == (lhs: NWInterface, rhs: NWInterface) -> Bool { fatalError() }
    public func hash(into hasher: inout Hasher) {}
}

// https://developer.apple.com/documentation/network/nwpath
public struct NWPath: Equatable, CustomDebugStringConvertible, Sendable {
    // https://developer.apple.com/documentation/network/nwpath/status-swift.enum
    public enum Status: Sendable {
        case satisfied
        case unsatisfied
        case requiresConnection
    }

    // https://developer.apple.com/documentation/network/nwpath/unsatisfiedreason-swift.enum
    public enum UnsatisfiedReason: Sendable {
        case notAvailable
        case cellularDenied
        case wifiDenied
        case localNetworkDenied
        case vpnInactive
    }

    public let status: NWPath.Status
    public let availableInterfaces: [NWInterface]
    public let isExpensive: Bool
    public let supportsIPv4: Bool
    public let supportsIPv6: Bool
    public let supportsDNS: Bool

    // https://developer.apple.com/documentation/network/nwpath/isconstrained
    public var isConstrained: Bool { fatalError() }
    // https://developer.apple.com/documentation/network/nwpath/isultraconstrained
    @available(macOS 26.0, iOS 26.0, watchOS 26.0, tvOS 26.0, visionOS 26.0, *)
    public var isUltraConstrained: Bool { fatalError() }
    // https://developer.apple.com/documentation/network/nwpath/unsatisfiedreason-swift.property
    public var unsatisfiedReason: NWPath.UnsatisfiedReason { fatalError() }

    // https://developer.apple.com/documentation/network/nwpath/usesinterfacetype(_:)
    public func usesInterfaceType(_ type: NWInterface.InterfaceType) -> Bool { fatalError() }

    public var debugDescription: String { fatalError() }
    public static func == (lhs: NWPath, rhs: NWPath) -> Bool { fatalError() }
}

// https://developer.apple.com/documentation/network/nwpathmonitor
final public class NWPathMonitor: @unchecked Sendable {
    // https://developer.apple.com/documentation/network/nwpathmonitor/pathupdatehandler
    @preconcurrency final public var pathUpdateHandler: (@Sendable (_ newPath: NWPath) -> Void)? {
        get { fatalError() }
        set {}
    }

    final public var currentPath: NWPath { fatalError() }
    final public var queue: DispatchQueue? { fatalError() }

    public init() { fatalError() }
    public init(requiredInterfaceType: NWInterface.InterfaceType) { fatalError() }
    public init(prohibitedInterfaceTypes: [NWInterface.InterfaceType]) { fatalError() }

    // https://developer.apple.com/documentation/network/nwpathmonitor/start(queue:)
    final public func start(queue: DispatchQueue) {}
    // https://developer.apple.com/documentation/network/nwpathmonitor/cancel()
    final public func cancel() {}
}
