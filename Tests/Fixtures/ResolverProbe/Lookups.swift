// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationCore
    import OperationNetworking
    import OperationTestKit

    /// The lead of a session's clock over the real time.
    private final class LeadingClock: Sendable {
        let lead = Locked(Duration.zero)
    }

    /// Tests of a session while the system's resolver waits for a reply.
    struct Lookups {
        private let names: NameServer
        private let server: LoopbackServer
        private let session: CurlSession
        private let clock = LeadingClock()
        private var port: UInt16 { server.port }

        init(_ names: NameServer, lookups: Int) throws {
            self.names = names
            server = try LoopbackServer()
            server.route("/") { _ in .text("hello") }
            var configuration = CurlSession.Configuration()
            configuration.proxy = .none
            configuration.maximumNameLookups = lookups
            session = CurlSession(configuration: configuration, clockOffset: { [clock] in clock.lead.withLock { $0 } })
        }

        private func expect(_ isTrue: Bool, _ what: @autoclosure () -> String) {
            if !isTrue { print("BAD \(what())") }
        }

        private func expect(_ fetch: Fetch, _ outcome: String, _ what: String) {
            let seen = fetch.outcome()
            expect(seen == outcome, "\(what): \(seen)")
        }

        /// A lookup without a reply does not affect other requests.
        func othersGoOn() throws {
            let stuck = try (0..<2).map { try session.begin("\($0).silent.test", port) }
            for _ in stuck { expect(names.isAskedForAnother(), "a name was not looked up") }
            for _ in 0..<50 { expect(try session.begin("127.0.0.1", port).fetch, "200", "an address") }
            for number in 0..<5 { expect(try session.begin("\(number).quick.test", port).fetch, "200", "a name") }
            expect(try session.begin("none.test", port).fetch, "cannotFindHost", "a name that does not exist")
            expect(!stuck.contains { $0.fetch.isEnded }, "a pending lookup has ended")
            names.speak()
            for (fetch, _) in stuck { expect(fetch, "200", "a late answer") }
            session.closeAndWait()
        }

        /// A limited number of threads look up names, and further lookups wait.
        func areBounded(by limit: Int) throws {
            expect(try session.begin("127.0.0.1", port).fetch, "200", "at first")
            let threads = try Self.threads()
            let stuck = try (0..<100).map { try session.begin("\($0).silent.test", port) }
            for _ in 0..<limit { expect(names.isAskedForAnother(), "a name was not looked up") }
            // The session has seen all requests when this one has completed.
            expect(try session.begin("127.0.0.1", port).fetch, "200", "an address")
            expect(names.names.count == limit, "\(names.names.count) names were looked up at a time")
            let more = try Self.threads() - threads
            expect(more <= limit, "there are \(more) threads more")
            // Waiting requests can be canceled, and running lookups keep their threads.
            for (_, task) in stuck[50...] { task.cancel() }
            for (fetch, _) in stuck[50...] { expect(fetch, "cancelled", "one in the line") }
            names.speak()
            for (fetch, _) in stuck[..<50] { expect(fetch, "200", "a late answer") }
            expect(names.names.count == 50, "\(names.names.count) names were looked up in all")
            session.closeAndWait()
        }

        /// The connect limit ends the request but not its lookup, which keeps its thread.
        func endInTime() throws {
            let (late, _) = try session.begin("silent.test", port, connect: .milliseconds(200))
            expect(late, "timedOut", "one that takes too long")
            expect(late.age < .seconds(10), "it took \(late.age)")
            expect(names.isAskedForAnother(), "the name was not looked up")
            let error = late.error
            expect(error?.phase == .connecting && error?.isUnsent == true, "\(String(describing: error))")
            expect(error?.request?.url == "http://silent.test:\(port)/", "\(String(describing: error?.request))")
            expect(error?.message.contains("not resolved") == true, "\(String(describing: error?.message))")
            expect("\(error as Any)".contains("silent.test"), "the text does not name the host")
            let (next, _) = try session.begin("quick.test", port, connect: .seconds(600))
            // The wait for a thread does not count toward the limit.
            for hours in 0..<3 {
                clock.lead.withLock { $0 = .seconds(3_600 * hours) }
                expect(try session.begin("127.0.0.1", port).fetch, "200", "an address")
            }
            expect(!next.isEnded && names.names == ["silent.test"], "\(names.names): \(next.isEnded)")
            names.speak()
            expect(next, "200", "the next name")
            session.closeAndWait()
        }

        /// Canceling a request or closing the session ends the request immediately, whatever the resolver does.
        func endAtOnce() throws {
            let (cancelled, task) = try session.begin("a.silent.test", port)
            let (closed, _) = try session.begin("b.silent.test", port)
            for _ in 0..<2 { expect(names.isAskedForAnother(), "a name was not looked up") }
            let watch = ContinuousClock()
            let cancelling = watch.measure {
                task.cancel()
                expect(cancelled, "cancelled", "cancel")
            }
            expect(cancelling < .seconds(5), "to cancel took \(cancelling)")
            expect(try session.begin("127.0.0.1", port).fetch, "200", "an address")
            // An older libcurl waits for the lookup thread.
            let isOlder = try !CurlLibrary.shared.get().leavesLookupsBehind
            let closing = watch.measure {
                session.close()
                if isOlder { names.speak() }
                session.closeAndWait()
            }
            expect(closed, "sessionClosed", "close")
            expect(closing < .seconds(5), "to close took \(closing)")
        }

        private static func threads() throws -> Int {
            try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count
        }
    }
#endif
