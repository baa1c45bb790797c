// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(2)))
struct ExchangeOrderTests {
    /// The current state that the user requested, and the events that violated it.
    private struct Demands: Sendable {
        var isSuspended = true
        var isHeld = false
        var isCancelled = false
        var isOver = false
        var faults: [String] = []

        mutating func note(_ what: String) {
            if isSuspended || isHeld || isCancelled { faults.append("\(what) though it was not wanted") }
        }
    }

    private static func events(_ request: NetworkRequest) -> [ScriptedSession.Event] {
        let part = ScriptedSession.Event.bytes(Data("12345".utf8))
        switch request.url.path {
        case "/a": return [.head(302, ["Location": "/b"]), part, part]
        case "/b": return [.head(303, ["Location": "https://other.com/c"])]
        default: return [.head(200, [:]), part, part, part, part]
        }
    }

    @Test func `in any order of calls, a suspended, held or canceled task delivers no events`()
        async throws
    {
        var complete = 0
        for seed in UInt64(0)..<3_000 {
            let transport = ScriptedSession(Self.events)
            let later = Locked<[@Sendable () -> Void]>([])
            let session = ExchangeSession(over: transport, configuration: ExchangeConfiguration()) { work in
                later.withLock { $0.append(work) }
            }
            @Sendable func notify() -> Bool {
                let work = later.withLock { $0.isEmpty ? nil : $0.removeFirst() }
                work?()
                return work != nil
            }
            let demands = Locked(Demands())
            let probe = RecordingReceiver { event, _ in
                if case .head = event { demands.withLock { $0.note("a head") } }
                if case .bytes = event { demands.withLock { $0.note("bytes") } }
            }
            let url = try #require(URL(string: "https://h.com/a"))
            let task = session.makeTask(with: try NetworkRequest(url: url), receiver: probe)
            var explorer = Explorer(seed: seed)
            var turns = 0
            explorer.add("user") { generator in
                turns += 1
                guard turns < 40 else { return false }
                switch Int.random(in: 0..<40, using: &generator) {
                case 0:
                    task.cancel()
                    demands.withLock { $0.isCancelled = true }
                case 1..<10:
                    task.suspend()
                    demands.withLock { $0.isSuspended = true }
                case 10..<18:
                    task.hold()
                    demands.withLock { $0.isHeld = true }
                case 18..<28:
                    demands.withLock { $0.isHeld = false }
                    task.proceed()
                default:
                    demands.withLock { $0.isSuspended = false }
                    task.resume()
                }
                return true
            }
            explorer.add("network") { _ in transport.step() ? true : nil }
            explorer.add("teller") { _ in notify() ? true : nil }
            explorer.run()
            demands.withLock { demands in
                demands.isSuspended = false
                demands.isHeld = false
            }
            task.proceed()
            task.resume()
            while notify() || transport.step() {}
            let seen = await probe.end()
            let end = demands.withLock { $0 }
            #expect(seen.isOrderly && end.faults.isEmpty, "seed \(seed): \(seen.faults) \(end.faults)")
            if seen.error == nil {
                complete += 1
                #expect(seen.text == "12345123451234512345", "seed \(seed)")
                #expect(
                    transport.requests.map(\.url.absoluteString) == [
                        "https://h.com/a", "https://h.com/b", "https://other.com/c",
                    ])
            } else {
                #expect(end.isCancelled && seen.error?.code == .cancelled, "seed \(seed)")
            }
            while transport.step() {}
        }
        #expect(complete > 500)
    }

    @Test func `a task without references continues, and an ended exchange is released`()
        async throws
    {
        let transport = ScriptedSession(Self.events)
        let session = ExchangeSession(over: transport)
        let url = try #require(URL(string: "https://h.com/a"))
        let probe = RecordingReceiver()
        weak var task: AnyObject?
        do {
            let made = session.makeTask(with: try NetworkRequest(url: url), receiver: probe)
            task = made
            made.resume()
        }
        #expect(task != nil)
        while transport.step() {}
        #expect(await probe.end().text.count == 20)
        #expect(task == nil)
    }

    @Test func `resume and proceed never call the receiver synchronously`() throws {
        let transport = ScriptedSession(Self.events)
        let later = Locked<[@Sendable () -> Void]>([])
        let session = ExchangeSession(over: transport, configuration: ExchangeConfiguration()) { work in
            later.withLock { $0.append(work) }
        }
        for isHeld in [false, true] {
            let probe = RecordingReceiver()
            let url = try #require(URL(string: "https://h.com/z"))
            let task = try session.begin(url, probe)
            // Another thread is delivering headers when delivery is paused, before the scripted session knows of it.
            let inner = try #require(transport.lastTask)
            if isHeld { task.hold() } else { task.suspend() }
            inner.deliverHead(200)
            #expect(probe.record.heads.isEmpty)
            if isHeld { task.proceed() } else { task.resume() }
            #expect(probe.record.heads.isEmpty)
            for work in later.withLock({ $0 }) { work() }
            later.withLock { $0 = [] }
            #expect(probe.record.heads.count == 1)
            task.cancel()
        }
    }
}
