// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationCore
    import OperationTestKit

    /// A real nginx that runs as a child process of the tests in its own folder.
    ///
    /// All its functions block. Call them in `TestThread.run`.
    final class NginxServer: Sendable {
        /// The server that most tests share.
        ///
        /// It ends with the process.
        static let shared = Task { try await TestThread.run { try NginxServer() } }

        /// The size of `/large`.
        static let largeCount = 8 << 20

        let certificates: TestCertificates
        let ports: NginxPorts
        private let folder: URL
        private let nginx: String
        private let program: Locked<GuardedProgram?>

        /// Starts the server.
        ///
        /// If `restarts` is true, the caller must call `remove` at the end.
        init(restarts: Bool = false) throws {
            guard let nginx = ServerPrograms.nginx, let openssl = ServerPrograms.openssl else {
                throw ServerFailure(description: "There is no nginx, or no openssl. Run Scripts/prepare-servers.")
            }
            self.nginx = nginx
            folder = FileManager.default.temporaryDirectory.appendingPathComponent("nginx-\(UUID().uuidString)")
            try FileManager.default.createDirectory(
                at: folder.appendingPathComponent("root/files"), withIntermediateDirectories: true)
            certificates = try TestCertificates(in: folder, openssl: openssl)
            try Self.writeFiles(folder)
            var ports = NginxPorts()
            var attempts = 1
            while true {
                do {
                    program = Locked(try Self.start(nginx, folder, ports))
                    break
                } catch  where attempts < 5 {
                    // Another program has taken one of the ports in the meantime.
                    ports = NginxPorts()
                    attempts += 1
                } catch {
                    try? FileManager.default.removeItem(at: folder)
                    throw error
                }
            }
            self.ports = ports
            if !restarts { try Data().write(to: folder.appendingPathComponent("litter")) }
        }

        private static func writeFiles(_ folder: URL) throws {
            let root = folder.appendingPathComponent("root")
            try Data(repeating: 0x78, count: 100).write(to: root.appendingPathComponent("small"))
            try Data(TestPattern.bytes(count: largeCount)).write(to: root.appendingPathComponent("large"))
            try Data(String(repeating: "All work and no play. ", count: 5_000).utf8)
                .write(to: root.appendingPathComponent("text"))
            try Data("Aladdin:{PLAIN}open sesame\n".utf8).write(to: folder.appendingPathComponent("users"))
        }

        private static func start(_ nginx: String, _ folder: URL, _ ports: NginxPorts) throws -> GuardedProgram {
            let configuration = folder.appendingPathComponent("nginx.conf")
            try Data(NginxConfiguration(folder: folder.path, ports: ports).text.utf8).write(to: configuration)
            let log = folder.appendingPathComponent("error.log")
            let program = try GuardedProgram(
                nginx, ["-p", folder.path, "-c", configuration.path, "-e", log.path],
                removing: folder,
                endingBy: "TERM")
            let end = ContinuousClock.now + .seconds(30)
            // A port is also open if another program uses it. nginx writes this file when it has all its ports.
            let started = folder.appendingPathComponent("nginx.pid").path
            while !FileManager.default.fileExists(atPath: started) || !ports.all.allSatisfy(LocalPort.isOpen) {
                guard program.isRunning, ContinuousClock.now < end else {
                    let text = try? String(contentsOf: log, encoding: .utf8)
                    program.end()
                    throw ServerFailure(description: "nginx did not start: \(text ?? "")")
                }
                usleep(5_000)
            }
            return program
        }

        /// The file that a PUT to `/files/NAME` created.
        func uploaded(_ name: String) -> URL { folder.appendingPathComponent("root/files/\(name)") }

        /// Returns the number of responses of the counting port for each request target that contains `mark`.
        ///
        /// Waits for `count` responses, or for some seconds.
        func answered(_ mark: String, count: Int) throws -> [String: Int] {
            let log = folder.appendingPathComponent("counted.log")
            let end = ContinuousClock.now + .seconds(10)
            while true {
                let lines = try String(contentsOf: log, encoding: .utf8).split(separator: "\n")
                let targets = lines.filter { $0.contains(mark) }.compactMap { line in
                    line.split(separator: " ").dropFirst().first.map(String.init)
                }
                if targets.count >= count || ContinuousClock.now > end {
                    return Dictionary(targets.map { ($0, 1) }, uniquingKeysWith: +)
                }
                usleep(5_000)
            }
        }
    }

    // Stopping and restarting.
    extension NginxServer {
        /// Ends the server immediately.
        func stop() {
            let running = program.withLock { program in
                defer { program = nil }
                return program
            }
            running?.end()
        }

        /// Starts the server again with the same ports.
        func start() throws {
            let started = try Self.start(nginx, folder, ports)
            program.withLock { $0 = started }
        }

        /// Ends the server after it has closed its idle connections in the way that their protocol prescribes.
        func quit() throws {
            try signal(SIGQUIT)
            program.withLock { $0 }?.waitForEnd()
            stop()
        }

        /// Starts new workers while the old ones complete their requests.
        func reload() throws { try signal(SIGHUP) }

        private func signal(_ number: Int32) throws {
            let text = try String(contentsOf: folder.appendingPathComponent("nginx.pid"), encoding: .utf8)
            guard let process = Int32(text.trimmingCharacters(in: .whitespacesAndNewlines)) else {
                throw ServerFailure(description: "nginx has no process number")
            }
            kill(process, number)
        }

        /// Ends the server and removes its folder.
        func remove() {
            stop()
            try? FileManager.default.removeItem(at: folder)
        }
    }
#endif
