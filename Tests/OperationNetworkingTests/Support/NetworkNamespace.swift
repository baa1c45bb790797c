// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if os(Linux)
    import Foundation
    import OperationTestKit
    import Testing

    /// A network of their own for child processes.
    struct NetworkNamespace: Sendable {
        /// Without any interface that is up; nil if that cannot be had here.
        static let empty = NetworkNamespace([["unshare", "-rn"], ["unshare", "-n"]], trying: ["ip", "link"])

        /// With the loopback interface, at which the system's resolver asks for all names; nil if that cannot be had here.
        ///
        /// It waits half a minute for each answer, and asks once.
        static let withOwnResolver: NetworkNamespace? = {
            let setUp = """
                folder=$(mktemp -d) && mount -t tmpfs tmpfs "$folder" || exit 1
                printf 'nameserver 127.0.0.1\\noptions timeout:30 attempts:1\\n' > "$folder/resolv"
                echo 'hosts: files dns' > "$folder/nsswitch"
                mount --bind "$folder/resolv" /etc/resolv.conf || exit 1
                [ ! -e /etc/nsswitch.conf ] || mount --bind "$folder/nsswitch" /etc/nsswitch.conf || exit 1
                umount -l "$folder" && rmdir "$folder"
                ip link set lo up && exec "$@"
                """
            let shell = ["sh", "-c", setUp, "sh"]
            return NetworkNamespace([["unshare", "-rnm"] + shell, ["unshare", "-nm"] + shell], trying: ["true"])
        }()

        private let launcher: [String]

        private init?(_ launchers: [[String]], trying command: [String]) {
            guard let launcher = launchers.first(where: { Self.run($0 + command) != nil }) else { return nil }
            self.launcher = launcher
        }

        /// Runs a program of the tests in one, and returns what it prints.
        func probe(_ name: String, _ arguments: String...) async throws -> String {
            let program = try #require(ProbeProgram.url(name), "\(name) was not built.")
            return try await TestThread.run {
                Self.run(launcher + [program.path] + arguments) ?? "It could not be run."
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
