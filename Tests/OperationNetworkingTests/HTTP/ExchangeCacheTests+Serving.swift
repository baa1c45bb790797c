// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    // Tests for bodies and headers that are served from the cache.
    extension ExchangeCacheTests {
        /// The number of bodies that are open for reading, after all earlier work of the cache.
        private func readers(_ session: ExchangeSession) async -> Int {
            await withCheckedContinuation { continuation in
                guard let cache = session.configuration.cache else { return continuation.resume(returning: -1) }
                cache.perform { disk, _ in continuation.resume(returning: disk.readerCount) }
            }
        }

        private func expectNoReaders(_ session: ExchangeSession) async throws {
            while await readers(session) > 0 {
                try Task.checkCancellation()
                await Task.yield()
            }
        }

        @Test func `a cached redirect that is refused leaves no file open`() async throws {
            server.route("/a") { _ in .redirect(to: "/b", status: 301).with("Cache-Control", "max-age=60") }
            server.route("/b") { _ in .text("b") }
            #expect(try await session().run(server.url("/a")).text == "b")
            let strict = session { $0.redirects.maximumCount = 0 }
            #expect(try await strict.run(server.url("/a")).error?.code == .tooManyRedirects)
            #expect(server.requests.map(\.path) == ["/a", "/b"])
            try await expectNoReaders(strict)
        }

        @Test func `a held task that is released while it reads from the cache leaves no file open`() async throws {
            let session = try await sessionWithBody()
            let probe = RecordingReceiver { if case .head = $0 { $1.hold() } }
            var task: (any NetworkTask)? = session.makeTask(
                with: try NetworkRequest(url: server.url("/a")), receiver: probe)
            task?.resume()
            _ = await probe.record { $0.head != nil }
            #expect(await readers(session) == 1)
            #expect(probe.record.body.isEmpty && probe.record.ends == 0)
            task = nil
            try await expectNoReaders(session)
        }

        @Test func `a deadline ends a held task that was released while it reads from the cache`() async throws {
            let clock = ManualClock()
            let session = try await sessionWithBody { ($0.deadline, $0.clock) = (.seconds(10), clock) }
            let probe = RecordingReceiver { if case .head = $0 { $1.hold() } }
            session.makeTask(with: try NetworkRequest(url: server.url("/a")), receiver: probe).resume()
            _ = await probe.record { $0.head != nil }
            // `readers` waits until the cache has finished its earlier work.
            #expect(await readers(session) <= 1)
            clock.advance(by: .seconds(11))
            let seen = await probe.end()
            #expect(seen.error?.code == .timedOut && seen.isOrderly && clock.pendingCount == 0)
            try await expectNoReaders(session)
        }

        /// Returns a suspended task whose headers wait in the cache.
        private func suspendedTask() async throws -> (ExchangeSession, RecordingReceiver, any NetworkTask) {
            let (session, probe) = (try await sessionWithBody(), RecordingReceiver())
            let task = session.makeTask(with: try NetworkRequest(url: server.url("/a")), receiver: probe)
            session.startSuspended(task)
            #expect(await readers(session) == 1)
            return (session, probe, task)
        }

        @Test func `a suspended exchange does not deliver the headers of a cached response`() async throws {
            let (session, probe, task) = try await suspendedTask()
            #expect(probe.record.heads.isEmpty && probe.record.ends == 0)
            task.hold()
            task.resume()
            #expect(probe.record.heads.isEmpty && probe.record.ends == 0)
            task.proceed()
            let seen = await probe.end()
            #expect(seen.text == "body" && seen.isOrderly)
            #expect(server.requests.count == 1)
            try await expectNoReaders(session)
        }

        @Test func `a task canceled while suspended with cached headers leaves no file open`() async throws {
            let (session, probe, task) = try await suspendedTask()
            task.cancel()
            let seen = await probe.end()
            #expect(seen.error?.code == .cancelled && seen.heads.isEmpty && seen.isOrderly)
            try await expectNoReaders(session)
        }

        @Test func `a response stored compressed is not served to a request without Accept-Encoding`() async throws {
            let text = String(repeating: "text ", count: 100)
            server.route("/a") { request in
                request["Accept-Encoding"] == nil
                    ? .text(text) : .gzip(Array(text.utf8)).with("Cache-Control", "max-age=60")
            }
            let session = session()
            let raw = try await session.run(server.url("/a"), headers: ["Accept-Encoding": "gzip"])
            #expect(raw.heads.first?.isDecoded == false && raw.body.prefix(2) == [0x1F, 0x8B])
            #expect(try await session.run(server.url("/a")).text == text)
            #expect(server.requests.count == 2)
            let again = try await session.run(server.url("/a"), headers: ["Accept-Encoding": "gzip"])
            #expect(again.body.isEmpty == false && again.isOrderly)
        }

        @Test func `a held task delivers the end of a generated 504 response only after proceed`() async throws {
            let session = session()
            let probe = RecordingReceiver { if case .head = $0 { $1.hold() } }
            let request = try NetworkRequest(url: server.url("/a"), headers: ["Cache-Control": "only-if-cached"])
            let task = session.makeTask(with: request, receiver: probe)
            task.resume()
            _ = await probe.record { $0.head != nil }
            #expect(await readers(session) == 0)
            #expect(probe.record.status == 504 && probe.record.ends == 0)
            task.proceed()
            let seen = await probe.end()
            #expect(seen.error == nil && seen.isOrderly)
        }
    }
#endif
