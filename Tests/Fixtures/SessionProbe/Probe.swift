// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if os(Linux)
    import Foundation
    import OperationNetworking

    /// What the program can do with a session.
    struct Probe: Sendable {
        private let url: URL
        private let session: CurlSession

        init(_ url: URL) {
            self.url = url
            var configuration = CurlSession.Configuration()
            configuration.proxy = .none
            session = CurlSession(configuration: configuration)
        }

        /// Writes a line at once: what is kept in a buffer, a child has too.
        private func say(_ line: String) {
            let bytes = Array("\(line)\n".utf8)
            _ = write(1, bytes, bytes.count)
        }

        /// A child without `exec` cannot use the session that it got, says so, and can let go of it.
        func fork() throws {
            let request = try NetworkRequest(url: url)
            say("parent: \(Waiting.run(request, on: session))")
            // Swift hides it, since a child of a process with threads may do little.
            guard let symbol = dlsym(nil, "fork") else { exit(2) }
            let fork = unsafeBitCast(symbol, to: (@convention(c) () -> pid_t).self)
            let child = fork()
            if child == 0 {
                say("child: \(Waiting.run(request, on: session))")
                session.closeAndWait()
                _exit(7)
            }
            var status: Int32 = 0
            waitpid(child, &status, 0)
            say("child ended: \(status >> 8)")
            say("parent: \(Waiting.run(request, on: session))")
            session.closeAndWait()
        }

        /// Programs that are started while there is much to do see none of the session's descriptors.
        func spawnUnderLoad() throws {
            // What was there before: programs that Foundation starts get a socket from it.
            spawn("ls -l /proc/self/fd")
            say("begin")
            let file = FileManager.default.temporaryDirectory.appendingPathComponent("probe-\(getpid())")
            try Data(count: 300_000).write(to: file)
            let requests = [
                try NetworkRequest(url: url), try NetworkRequest("PUT", url: url, body: .file(try FileRegion(file))),
            ]
            for lane in 0..<12 {
                Thread { while true { _ = Waiting.run(requests[lane % 2], on: session) } }.start()
            }
            _ = Waiting.run(requests[0], on: session)
            for _ in 0..<15 { spawn("ls -l /proc/self/fd; sleep 0.02") }
            try FileManager.default.removeItem(at: file)
            say("done")
            _exit(0)
        }

        private func spawn(_ command: String) {
            var texts: [UnsafeMutablePointer<CChar>?] = []
            for text: String in ["/bin/sh", "-c", command] { texts.append(strdup(text)) }
            texts.append(nil)
            var child = pid_t()
            var environment: [UnsafeMutablePointer<CChar>?] = [nil]
            guard posix_spawn(&child, "/bin/sh", nil, nil, &texts, &environment) == 0 else { return say("no child") }
            var status: Int32 = 0
            waitpid(child, &status, 0)
            for text in texts { free(text) }
        }

        /// The server resets each connection while the body is sent.
        func writeIntoBrokenPipes() throws {
            signal(SIGPIPE, SIG_DFL)
            let request = try NetworkRequest("POST", url: url, body: .data(Data(count: 4_000_000)))
            var outcomes: Set<String> = []
            for _ in 0..<30 { outcomes.insert(Waiting.run(request, on: session)) }
            say("survived: \(outcomes.sorted().joined(separator: " "))")
        }
    }
#endif
