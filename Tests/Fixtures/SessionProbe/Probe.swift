// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking

    /// The tests that the program can run with a session.
    struct Probe: Sendable {
        private let url: URL
        private let session: CurlSession

        init(_ url: URL) {
            self.url = url
            var configuration = CurlSession.Configuration()
            configuration.proxy = .none
            session = CurlSession(configuration: configuration)
        }

        /// Writes a line immediately, because a forked child would inherit a buffer.
        private func say(_ line: String) {
            let bytes = Array("\(line)\n".utf8)
            _ = write(1, bytes, bytes.count)
        }

        /// A child without `exec` cannot use the inherited session, but can close it.
        func fork() throws {
            let request = try NetworkRequest(url: url)
            say("parent: \(Waiting.run(request, on: session))")
            // Swift hides `fork`, because the child of a multithreaded process can do little.
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

        /// Programs that are started under load inherit no descriptors of the session.
        func spawnUnderLoad() throws {
            // Lists the descriptors that existed before. Foundation passes a socket to the programs that it starts.
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

        /// When descriptors run out, requests and downloads still end.
        ///
        /// When some are available again, they succeed.
        func runOutOfDescriptors() throws {
            let request = try NetworkRequest(url: url)
            let folder = FileManager.default.temporaryDirectory.appendingPathComponent("probe-\(getpid())")
            say("before: \(Waiting.run(request, on: session)) \(download(into: folder))")
            let others = try requestsWithFiles(folder)
            // The loop takes all free descriptors and leaves only a few.
            var taken: [Int32] = []
            var limit = rlimit(rlim_cur: 96, rlim_max: 96)
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            while case let copy = dup(0), copy >= 0 { taken.append(copy) }
            // This session has no descriptors from before.
            let late = CurlSession(configuration: session.configuration)
            say("a new session: \(Waiting.run(request, on: late))")
            for left in [0, 1, 4] {
                for copy in taken.suffix(left) { close(copy) }
                taken.removeLast(min(left, taken.count))
                let outcomes = several { Waiting.run(request, on: self.session) }
                say("with \(left): \(outcomes.sorted().joined(separator: " "))")
                say("a file with \(left): \(download(into: folder))")
                for (name, request, session) in left < 4 ? others : [] {
                    say("\(name) with \(left): \(Waiting.run(request, on: session))")
                }
            }
            for copy in taken { close(copy) }
            say("the same session: \(Waiting.run(request, on: late))")
            late.closeAndWait()
            say("after: \(several { Waiting.run(request, on: self.session) }.sorted()) \(download(into: folder))")
            try FileManager.default.removeItem(at: folder)
            session.closeAndWait()
        }

        /// Requests that open more than a socket: for a name lookup, a body and certificates.
        private func requestsWithFiles(_ folder: URL) throws -> [(String, NetworkRequest, CurlSession)] {
            let (body, authority) = (folder.appendingPathComponent("body"), folder.appendingPathComponent("authority"))
            try Data(count: 100).write(to: body)
            try Data().write(to: authority)
            var configuration = CurlSession.Configuration()
            configuration.proxy = .none
            configuration.tls.trust = .file(authority)
            let port = self.url.port ?? 80
            func url(_ text: String) throws -> URL {
                guard let url = URL(string: text) else { throw CocoaError(.fileReadInvalidFileName) }
                return url
            }
            return [
                ("a name", try NetworkRequest(url: url("http://probe-without-address.invalid:\(port)/")), session),
                ("a body", try NetworkRequest("PUT", url: self.url, body: .file(try FileRegion(body))), session),
                (
                    "certificates", try NetworkRequest(url: url("https://127.0.0.1:\(port)/")),
                    CurlSession(configuration: configuration)
                ),
            ]
        }

        /// The set of outcomes of many concurrent calls.
        private func several(_ body: @escaping @Sendable () -> String) -> Set<String> {
            let outcomes = Locked<Set<String>>([])
            let group = DispatchGroup()
            for _ in 0..<20 {
                group.enter()
                Thread {
                    let outcome = body()
                    outcomes.withLock { _ = $0.insert(outcome) }
                    group.leave()
                }.start()
            }
            group.wait()
            return outcomes.withLock { $0 }
        }

        private func download(into folder: URL) -> String {
            let operation = NetworkDownloadOperation<Int>(url: url, urlSession: session) { _, _ in 0 }
            operation.destination = .file(folder.appendingPathComponent("file"))
            operation.downloadOptions.existingItem = .replace
            operation.callbackQueue = DispatchQueue(label: "SessionProbe")
            let isOver = DispatchSemaphore(value: 0)
            let outcome = Locked("nothing")
            operation.observe(on: DispatchQueue(label: "SessionProbe.observer")) { end in
                outcome.withLock { $0 = end.error.map { "\($0.code)" } ?? (end.result == nil ? "cancelled" : "saved") }
                isOver.signal()
            }
            operation.start()
            isOver.wait()
            return outcome.withLock { $0 }
        }
    }
#endif
