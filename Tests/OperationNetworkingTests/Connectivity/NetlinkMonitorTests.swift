// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if os(Linux)
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// The monitor on Linux, on this machine's own network and in network namespaces, whose interfaces are taken down.
    @Suite(.timeLimit(.minutes(3)))
    struct NetlinkMonitorTests {
        @Test func `the state is known at once`() {
            let monitor = NetlinkMonitor()
            #expect(monitor.failure == nil)
            #expect(monitor.connectivity.status != .unknown)
            #expect(SystemConnectivity.shared.connectivity.status != .unknown)
        }

        @Test func `its socket is not inherited, and is closed when the monitor goes`() async throws {
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
            // Its queue comes by soon.
            while ProcessFigures.openDescriptors[descriptor] == socket { await Task.yield() }
        }

        @Test(.enabled(if: NetworkNamespaces.areThere, "There are no network namespaces here, or no ip command."))
        func `interfaces, addresses, routes and cables come and go`() async throws {
            #expect(try await NetworkNamespaces.probe("changes") == "end")
        }

        @Test(.enabled(if: NetworkNamespaces.areThere, "There are no network namespaces here, or no ip command."))
        func `after a thousand flaps it knows what is so`() async throws {
            let rounds = Rounds.count(ci: 250, soak: 1_000)
            #expect(try await NetworkNamespaces.probe("flapping", "\(rounds)") == "end")
        }

        @Test(.enabled(if: NetworkNamespaces.areThere, "There are no network namespaces here, or no ip command."))
        func `where messages are lost for want of room, it knows what is so afterwards`() async throws {
            #expect(try await NetworkNamespaces.probe("flapping", "250", "2304") == "end")
        }
    }

    /// Networks of their own for child processes.
    enum NetworkNamespaces {
        /// How one is entered; nil if that cannot be done here.
        private static let launcher: [String]? = [["unshare", "-rn"], ["unshare", "-n"]].first { command in
            run(command + ["ip", "link"]) != nil
        }

        static let areThere = launcher != nil

        /// Runs the program of the tests in one, and returns what it prints.
        static func probe(_ arguments: String...) async throws -> String {
            let launcher = try #require(launcher)
            let program = try #require(ProbeProgram.url("ConnectivityProbe"), "ConnectivityProbe was not built.")
            return try await TestThread.run {
                run(launcher + [program.path] + arguments) ?? "It could not be run."
            }
        }

        /// What a program prints; nil if it fails.
        private static func run(_ command: [String]) -> String? {
            let process = Process(), output = Pipe()
            process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            process.arguments = command
            var environment = ProcessInfo.processInfo.environment
            environment["PATH"] = (environment["PATH"] ?? "/usr/bin:/bin") + ":/usr/local/sbin:/usr/sbin:/sbin"
            process.environment = environment
            process.standardInput = FileHandle.nullDevice
            process.standardOutput = output
            process.standardError = FileHandle.nullDevice
            guard (try? process.run()) != nil else { return nil }
            let text = output.fileHandleForReading.readDataToEndOfFile()
            process.waitUntilExit()
            guard process.terminationStatus == 0 else { return nil }
            return String(decoding: text, as: UTF8.self).trimmingCharacters(in: .newlines)
        }
    }
#endif
