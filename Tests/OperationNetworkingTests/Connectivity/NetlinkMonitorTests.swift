// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if os(Linux)
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// Tests the monitor on this machine's own network, and in network namespaces whose interfaces are taken down.
    @Suite(.timeLimit(.minutes(3)))
    struct NetlinkMonitorTests {
        @Test func `the state is known immediately`() {
            let monitor = NetlinkMonitor()
            #expect(monitor.failure == nil)
            #expect(monitor.connectivity.status != .unknown)
            #expect(SystemConnectivity.shared.connectivity.status != .unknown)
        }

        @Test func `the advice depends on the error`() {
            #expect(NetlinkMonitor.advice(EPERM).hasPrefix("Allow the process to use netlink sockets"))
            #expect(NetlinkMonitor.advice(ENOBUFS).hasPrefix("The system has no memory or file descriptors left"))
            #expect(NetlinkMonitor.advice(EBADF).hasPrefix("Create the monitor again"))
        }

        @Test func `the socket is not inherited, and is closed when the monitor is released`() async throws {
            let socket: String
            let descriptor: Int32
            do {
                let monitor = NetlinkMonitor()
                descriptor = try #require(monitor.descriptor)
                #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0)
                #expect(fcntl(descriptor, F_GETFL) & O_NONBLOCK != 0)
                socket = try #require(ProcessFigures.openDescriptors[descriptor])
                let observation = monitor.observe { _ in }
                #expect(ProcessFigures.openDescriptors[descriptor] == socket)
                withExtendedLifetime(observation) {}
            }
            // The queue of the monitor closes the socket soon.
            while ProcessFigures.openDescriptors[descriptor] == socket { await Task.yield() }
        }

        @Test(.enabled(if: NetworkNamespace.refusing != nil, "There is no strace here, or it may not trace."))
        func `a request that the system refused is sent again after a second`() async throws {
            let system = try #require(NetworkNamespace.refusing)
            #expect(try await system.probe("ConnectivityProbe", "sending") == "end")
        }

        @Test(.enabled(if: NetworkNamespace.empty != nil, "There are no network namespaces here, or no ip command."))
        func `changes of interfaces, addresses, routes and cables are reported`() async throws {
            let namespace = try #require(NetworkNamespace.empty)
            #expect(try await namespace.probe("ConnectivityProbe", "changes") == "end")
        }

        @Test(.enabled(if: NetworkNamespace.empty != nil, "There are no network namespaces here, or no ip command."))
        func `after many changes of an interface, the monitor knows the true state`() async throws {
            let rounds = Rounds.count(ci: 250, soak: 1_000)
            let namespace = try #require(NetworkNamespace.empty)
            #expect(try await namespace.probe("ConnectivityProbe", "flapping", "\(rounds)") == "end")
        }

        @Test(.enabled(if: NetworkNamespace.empty != nil, "There are no network namespaces here, or no ip command."))
        func `after messages are lost in a full buffer, the monitor knows the true state`() async throws {
            let namespace = try #require(NetworkNamespace.empty)
            #expect(try await namespace.probe("ConnectivityProbe", "flapping", "250", "2304") == "end")
        }
    }
#endif
