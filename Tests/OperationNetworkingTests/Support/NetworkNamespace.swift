// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if os(Linux)
    import Foundation
    import OperationTestKit
    import Testing

    /// A separate network for child processes.
    struct NetworkNamespace: Sendable {
        /// A network without an active interface, or `nil` if it is not available.
        static let empty = NetworkNamespace(
            [["unshare", "-rn"], ["unshare", "-n"]],
            trying: ["ip", "link", "add", "eth7", "type", "veth", "peer", "name", "peer7"])

        /// A network with a loopback interface, to which the system's resolver sends all queries, or `nil` if it is not
        /// available.
        ///
        /// The resolver waits half a minute for each response, and asks once.
        static let withOwnResolver: NetworkNamespace? = {
            let setUp = """
                folder=$(mktemp -d) || exit 1
                mount -t tmpfs tmpfs "$folder" || { rmdir "$folder"; exit 1; }
                leave() { umount -l "$folder"; rmdir "$folder"; }
                printf 'nameserver 127.0.0.1\\nsearch .\\noptions timeout:30 attempts:1\\n' > "$folder/resolv"
                echo 'hosts: files dns' > "$folder/nsswitch"
                mount --bind "$folder/resolv" /etc/resolv.conf || { leave; exit 1; }
                [ ! -e /etc/nsswitch.conf ] || mount --bind "$folder/nsswitch" /etc/nsswitch.conf || { leave; exit 1; }
                leave
                [ ! -d /var/run/nscd ] || mount -t tmpfs tmpfs /var/run/nscd || exit 1
                echo 0 2>/dev/null > /proc/sys/net/ipv4/ip_unprivileged_port_start || true
                ip link set lo up && exec "$@"
                """
            let shell = ["sh", "-c", setUp, "sh"]
            return NetworkNamespace([["unshare", "-rnm"] + shell, ["unshare", "-nm"] + shell], trying: ["true"])
        }()

        /// No namespace, but a system that refuses the first request of each thread, or `nil` if it is not available.
        static let refusing = NetworkNamespace(
            [
                [
                    "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=sendto", "-e",
                    "inject=sendto:error=ENOBUFS:when=1",
                ]
            ], trying: ["true"])

        private let launcher: [String]

        private init?(_ launchers: [[String]], trying command: [String]) {
            guard let launcher = launchers.first(where: { Self.run($0 + command) != nil }) else { return nil }
            self.launcher = launcher
        }

        /// Runs a test program in this network, and returns its output.
        func probe(_ name: String, _ arguments: String...) async throws -> String {
            let program = try #require(ProbeProgram.url(name), "\(name) was not built.")
            return try await TestThread.run {
                // A probe that hangs must not block the whole run.
                Self.run(["timeout", "-s", "KILL", "150"] + launcher + [program.path] + arguments)
                    ?? "It could not be run, or did not end."
            }
        }

        /// Returns the output of a program, or `nil` if it fails.
        private static func run(_ command: [String]) -> String? {
            var environment = ProcessInfo.processInfo.environment
            environment["PATH"] = (environment["PATH"] ?? "/usr/bin:/bin") + ":/usr/local/sbin:/usr/sbin:/sbin"
            // These variables would take precedence over the file of the test.
            environment["LOCALDOMAIN"] = nil
            environment["RES_OPTIONS"] = nil
            guard let end = try? Process.end(of: "/usr/bin/env", command, in: environment), end.status == 0 else {
                return nil
            }
            return end.output.trimmingCharacters(in: .newlines)
        }
    }
#endif
