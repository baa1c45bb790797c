// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationCore
    import OperationNetworking
    import OperationTestKit

    /// How far the clock of a session is ahead.
    private final class LeadingClock: Sendable {
        let lead = Locked(Duration.zero)
    }

    /// What a session does while the system's resolver waits for an answer.
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
            session = CurlSession(configuration: configuration, lead: { [clock] in clock.lead.withLock { $0 } })
        }

        private func expect(_ isTrue: Bool, _ what: @autoclosure () -> String) {
            if !isTrue { print("BAD \(what())") }
        }

        private func expect(_ fetch: Fetch, _ outcome: String, _ what: String) {
            let seen = fetch.outcome()
            expect(seen == outcome, "\(what): \(seen)")
        }

        /// A look-up that is not answered is nobody else's business.
        func othersGoOn() throws {
            let stuck = try (0..<2).map { try session.begin("\($0).silent.test", port) }
            for _ in stuck { expect(names.isAskedForAnother(), "a name was not looked up") }
            for _ in 0..<50 { expect(try session.begin("127.0.0.1", port).fetch, "200", "an address") }
            for number in 0..<5 { expect(try session.begin("\(number).quick.test", port).fetch, "200", "a name") }
            expect(try session.begin("none.test", port).fetch, "cannotFindHost", "a name of nobody")
            expect(!stuck.contains { $0.fetch.isEnded }, "a look-up without an answer has ended")
            names.speak()
            for (fetch, _) in stuck { expect(fetch, "200", "a late answer") }
            session.closeAndWait()
        }

        /// However many names are to be looked up, so many threads do it, and the others wait.
        func areBounded(by limit: Int) throws {
            expect(try session.begin("127.0.0.1", port).fetch, "200", "at first")
            let threads = try Self.threads()
            let stuck = try (0..<100).map { try session.begin("\($0).silent.test", port) }
            for _ in 0..<limit { expect(names.isAskedForAnother(), "a name was not looked up") }
            // The session has seen all of them when it has answered this one.
            expect(try session.begin("127.0.0.1", port).fetch, "200", "an address")
            expect(names.names.count == limit, "\(names.names.count) names were looked up at a time")
            let more = try Self.threads() - threads
            expect(more <= limit, "there are \(more) threads more")
            // Who waits may leave, too, and those who are looked up for keep their threads.
            for (_, task) in stuck[50...] { task.cancel() }
            for (fetch, _) in stuck[50...] { expect(fetch, "cancelled", "one in the line") }
            names.speak()
            for (fetch, _) in stuck[..<50] { expect(fetch, "200", "a late answer") }
            expect(names.names.count == 50, "\(names.names.count) names were looked up in all")
            session.closeAndWait()
        }

        /// The time limit for the connection ends the request, though not the look-up, which keeps its thread.
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
            // The wait for a thread does not count, however long it takes.
            for hours in 0..<3 {
                clock.lead.withLock { $0 = .seconds(3_600 * hours) }
                expect(try session.begin("127.0.0.1", port).fetch, "200", "an address")
            }
            expect(!next.isEnded && names.names == ["silent.test"], "\(names.names): \(next.isEnded)")
            names.speak()
            expect(next, "200", "the next name")
            session.closeAndWait()
        }

        /// A cancel ends the request at once, whatever the resolver does, and so does the end of the session.
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
            // An older libcurl waits for the thread.
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
