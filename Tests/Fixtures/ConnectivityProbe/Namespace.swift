// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if os(Linux)
    import Foundation
    import OperationNetworking

    /// The network of a namespace: an interface, and the commands that change it.
    struct Namespace {
        /// Creates the interface eth7, one end of a cable to peer7.
        init() { Self.ip(["link add eth7 type veth peer name peer7", "link set peer7 up"]) }

        /// Runs `ip` commands in sequence.
        ///
        /// If `mayFail` is true, failed commands are skipped.
        ///
        /// This function uses the C library, because Foundation's `Process` does not work without a loopback interface.
        @discardableResult
        static func ip(_ commands: [String], mayFail: Bool = false) -> Bool {
            let program = "ip \(mayFail ? "-force " : "")-batch -\(mayFail ? " 2>/dev/null" : "")"
            guard let input = popen(program, "w") else { return false }
            fputs(commands.joined(separator: "\n") + "\n", input)
            let isDone = pclose(input) == 0
            if !isDone, !mayFail { print("BAD ip: \(commands)") }
            return isDone
        }

        /// Waits until the monitor reports the expected connectivity, and prints an error if it does not.
        static func expect(
            _ step: String, _ monitor: some ConnectivityMonitor, _ isRight: @escaping @Sendable (Connectivity) -> Bool
        ) {
            let semaphore = DispatchSemaphore(value: 0)
            let observation = monitor.observe { if isRight($0) { semaphore.signal() } }
            if semaphore.wait(timeout: .now() + 20) == .timedOut { print("BAD \(step): \(monitor.connectivity)") }
            observation.cancel()
        }
    }

    /// A sequence of changes.
    struct Changes {
        private let monitor = NetlinkMonitor()
        private let near = NetlinkMonitor(.anyRoute)
        private let address = "addr add 192.0.2.7/24 dev eth7", route = "route add default via 192.0.2.1"

        private func step(_ name: String, _ commands: [String], _ status: Connectivity.Status) {
            Namespace.ip(commands)
            Namespace.expect(name, monitor) { $0.status == status }
        }

        func run() {
            if let failure = monitor.failure { print("BAD \(failure)") }
            if monitor.connectivity.status != .unsatisfied { print("BAD at first: \(monitor.connectivity)") }
            step("up", [address, "link set eth7 up", route], .satisfied)
            if monitor.connectivity.interfaces != [.wired] { print("BAD kind: \(monitor.connectivity)") }
            // The kernel removes its routes without a message.
            step("down", ["link set eth7 down"], .unsatisfied)
            step("up again, without it", ["link set eth7 up", "route add 198.51.100.0/24 dev eth7"], .unsatisfied)
            step("its route", [route], .satisfied)
            step("address removed", ["addr del 192.0.2.7/24 dev eth7"], .unsatisfied)
            step("address again", [address, route], .satisfied)
            step("route removed", ["route del default"], .unsatisfied)
            Namespace.expect("a route that leads nowhere else", near) { $0.status == .satisfied }
            step("route replaced", [route, "route replace default via 192.0.2.2"], .satisfied)
            step("cable pulled", ["link set peer7 down"], .unsatisfied)
            step("cable put in", ["link set peer7 up"], .satisfied)
            step("of IPv4 nothing", ["addr flush dev eth7"], .unsatisfied)
            step(
                "IPv6", ["addr add 2001:db8::7/64 dev eth7 nodad", "route add default via 2001:db8::1 dev eth7"],
                .satisfied)
            step("removed for good", ["link del eth7"], .unsatisfied)
        }
    }

    /// Many changes in quick succession, after which the monitor must report the actual state.
    struct Flapping {
        func run(rounds: Int, bufferSize: Int32?) {
            let monitor = NetlinkMonitor(.defaultRoute, receiveBufferSize: bufferSize)
            let up = ["link set eth7 up", "route add default via 192.0.2.1"], down = ["link set eth7 down"]
            Namespace.ip(["addr add 192.0.2.7/24 dev eth7"])
            let flaps = (0..<rounds).flatMap { _ in up + down }
            let ends: [(String, [String], Connectivity.Status)] = [
                ("up", up, .satisfied), ("down", [], .unsatisfied),
                ("without a route", ["link set eth7 up"], .unsatisfied),
                ("without an address", up + ["addr del 192.0.2.7/24 dev eth7"], .unsatisfied),
            ]
            for (name, last, status) in ends {
                Namespace.ip(flaps + last, mayFail: true)
                // A change after all of these must also be reported.
                mark(monitor, "\(name): \(status)") { $0.interfaces.contains(.wired) == (status == .satisfied) }
                let fresh = NetlinkMonitor().connectivity
                if fresh.status != status { print("BAD \(name): \(fresh)") }
            }
            if bufferSize != nil, monitor.overruns == 0 { print("BAD nothing was lost in a buffer that is too small") }
        }

        /// Adds another route, waits until the monitor reports it, and removes it.
        private func mark(
            _ monitor: NetlinkMonitor, _ name: String, _ isRight: @escaping @Sendable (Connectivity) -> Bool
        ) {
            Namespace.ip([
                "link add wlan9 type veth peer name peer9", "link set peer9 up", "link set wlan9 up",
                "addr add 198.51.100.9/24 dev wlan9", "route add default via 198.51.100.1 metric 900",
            ])
            Namespace.expect(name, monitor) { $0.interfaces.contains(.wifi) && isRight($0) }
            Namespace.ip(["link del wlan9"])
            Namespace.expect("\(name), afterwards", monitor) { !$0.interfaces.contains(.wifi) && isRight($0) }
        }
    }
#endif
