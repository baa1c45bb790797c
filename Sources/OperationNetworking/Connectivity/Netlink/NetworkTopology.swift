// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// The interfaces of a machine with their addresses and routes, and the state that follows from them.
package struct NetworkTopology: Sendable, Equatable {
    package private(set) var links: [Int32: NetworkLink] = [:]
    package private(set) var addresses: [NetworkAddress.Key: NetworkAddress] = [:]
    package private(set) var routes: [NetworkRoute] = []
    /// The routes that make the network available.
    package let need: RouteNeed

    package init(_ need: RouteNeed) {
        self.need = need
    }

    /// Returns whether a route can change the state.
    package func concerns(_ route: NetworkRoute) -> Bool {
        route.type == 1 && route.table != 255 && (need == .anyRoute || route.isDefault)
    }

    package mutating func add(_ link: NetworkLink) { links[link.index] = link }

    package mutating func removeLink(_ index: Int32) {
        links[index] = nil
        addresses = addresses.filter { $0.key.link != index }
    }

    package mutating func add(_ address: NetworkAddress) { addresses[address.key] = address }
    package mutating func remove(_ address: NetworkAddress) { addresses[address.key] = nil }

    package mutating func add(_ route: NetworkRoute) {
        if concerns(route), route.leadsOut { routes.append(route) }
    }

    package mutating func removeAllLinks() { links = [:] }
    package mutating func removeAllAddresses() { addresses = [:] }
    package mutating func removeAllRoutes() { routes = [] }

    /// The resulting state.
    ///
    /// The network is available if an interface other than loopback is running and has a route, and an interface has
    /// a usable address of the same IP version.
    package var connectivity: Connectivity {
        // An interface without an address uses the address of another interface, which may be intended.
        let families = Set(addresses.values.filter(\.isUsable).map(\.key.family))
        var ways: [(priority: UInt32, link: NetworkLink)] = []
        for link in links.values where link.isRunning && !link.isLoopback {
            let best = routes.filter { route in
                families.contains(route.family) && (route.links.isEmpty || route.links.contains(link.index))
            }.map(\.priority).min()
            if let best { ways.append((best, link)) }
        }
        ways.sort { ($0.priority, $0.link.index) < ($1.priority, $1.link.index) }
        var kinds: [Connectivity.Interface] = []
        for way in ways where !kinds.contains(way.link.kind) { kinds.append(way.link.kind) }
        return Connectivity(ways.isEmpty ? .unsatisfied : .satisfied, interfaces: kinds)
    }
}

/// The kind of route that a Linux system must have for the monitor to report an available network.
package enum RouteNeed: Sendable {
    /// The network is available only if the system has a default route, which leads to the internet.
    ///
    /// For example, a bridge for containers does not provide a default route.
    case defaultRoute
    /// The network is available if the system has a route to any other computer, even without internet access.
    ///
    /// Use this value in isolated networks, for example in a laboratory.
    case anyRoute
}
