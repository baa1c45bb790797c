// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The interfaces of a machine with their addresses and routes, and what follows from them: a pure value.
package struct NetworkPicture: Sendable, Equatable {
    package private(set) var links: [Int32: NetworkLink] = [:]
    package private(set) var addresses: [NetworkAddress.Key: NetworkAddress] = [:]
    package private(set) var routes: [NetworkRoute] = []
    /// Which routes count.
    package let need: RouteNeed

    package init(_ need: RouteNeed) {
        self.need = need
    }

    /// Whether a route could make a difference.
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

    /// What all of it comes to: there is a way out if an interface other than loopback runs and has a route, and some
    /// interface has an address of the same version of IP that can be used.
    package var connectivity: Connectivity {
        // Requests are sent from an address of another interface if their own has none, which may be so on purpose.
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
