// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationExporters
import OperationNetworking
import OperationTestKit
import Testing

/// Forwards all calls to another receiver, and declares this.
private final class Passing: NetworkReceiver {
    private let receiver: any NetworkReceiver

    init(_ receiver: any NetworkReceiver) { self.receiver = receiver }

    var nextReceiver: (any NetworkReceiver)? { receiver }

    func task(_ task: any NetworkTask, didReceive head: ResponseHead) { receiver.task(task, didReceive: head) }
    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {
        receiver.task(task, didReceive: bytes)
    }
    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) { receiver.task(task, didEndWith: error) }
}

@Suite("Observers: wrapped sessions, removal and emptying", .timeLimit(.minutes(3)))
struct ObservationLifeTests {
    @Test func `a late report of a sent body is not attributed to the next request`() async throws {
        let log = EventLog()
        // An exchange does this if its receiver is called on another thread.
        let session = ClosureSession { request, receiver in
            ClosureTask { task in
                let (watcher, url) = (HopObserverReceiver.watcher(behind: receiver), request.url)
                watcher?(.begins(request))
                watcher?(.bodySent)
                watcher?(.left(ResponseHead(url: url, status: 307)))
                watcher?(.ended)
                watcher?(.begins(request))
                receiver.task(task, didSend: 4, of: 4)
                receiver.task(task, didReceive: ResponseHead(url: url, status: 200))
                receiver.task(task, didEndWith: nil)
            }
        }
        let operation = NetworkUploadOperation(
            url: try #require(URL(string: "http://stub.example/")), method: "PUT", body: .data(Data("body".utf8)),
            urlSession: session
        ) { data, _ in data.count }
        operation.callbackQueue = DispatchQueue(label: "late word")
        #expect(try await log.value(of: operation) == 0)
        #expect(log.events.events.filter { $0.kind == .bodySent }.map(\.hop) == [1])
    }

    @Test("Each request is reported even if another receiver stands between the session and the operation")
    func wrapped() async throws {
        let bench = try OperationBench { _ in .redirect(to: "/there") }
        bench.server.route("GET", "/there") { _ in .text("Hello") }
        func passing(_ session: any NetworkSession) -> ClosureSession {
            ClosureSession { session.makeTask(with: $0, receiver: Passing($1)) }
        }
        let sessions: [any NetworkSession] = [
            passing(bench.session), RecordingSession(over: bench.session),
            passing(RecordingSession(over: bench.session)),
        ]
        for session in sessions {
            let log = EventLog()
            let operation = bench.watched(
                NetworkDataOperation(url: bench.server.url("/"), urlSession: session) { data, _ in data.count })
            #expect(try await log.value(of: operation) == 5)
            #expect(log.kinds.count { $0 == .hopBegan } == 2, "\(type(of: session)): \(log.kinds)")
        }
        // The same works without observers.
        let plain = NetworkDataOperation(url: bench.server.url("/"), urlSession: sessions[2]) { data, _ in data.count }
        plain.callbackQueue = bench.callbacks
        #expect(try await plain.run() == 5)
    }

    @Test func `the bytes that a canceled attempt had received are reported`() async throws {
        let bench = try OperationBench(), log = EventLog(), gate = Gate()
        let options = with(NetworkArchive.Options()) { $0.keepsBodies = true }
        let archive = NetworkArchive(options)
        bench.server.route("GET", "/") { _ in
            LoopbackAnswer(.head(200, ["Content-Length": "12"]), .send("Hello"), .stall(until: gate), .send(", world"))
        }
        let operation = bench.text()
        operation.addNetworkObserver(log)
        operation.addNetworkObserver(archive)
        operation.start()
        await until { operation.downloadProgress.completedBytes == 5 }
        operation.cancel()
        await log.ended()
        gate.open()
        log.check()
        let end = log.events.events.first { $0.kind == .attemptEnded }
        #expect(end?.ending == .cancelled && end?.receivedBytes == 5)
        #expect(String(decoding: try archive.har(), as: UTF8.self).contains("\"size\" : 5"))
    }

    @Test func `a removed observer gets no more events, and in a group, none of new operations`() async throws {
        let bench = try OperationBench(), lines = EventRecorder<String>()
        bench.server.route("/*") { _ in .json("[1]") }
        let (first, log, all) = (EventLog(), NetworkLog { lines.record($0) }, EventLog())
        let operation = bench.text()
        let itself = Shared<NetworkDataOperation<String>?>(operation)
        let stopping = EventLog { event in
            guard event.kind == .responded else { return }
            itself.value?.removeNetworkObserver(first)
            itself.value?.removeNetworkObserver(log)
        }
        for observer in [first, log, stopping, all] as [any NetworkObserver] { operation.addNetworkObserver(observer) }
        #expect(try await operation.run() == "[1]")
        itself.value = nil
        await all.ended()
        all.check()
        #expect(first.kinds.last == .responded && !lines.events.isEmpty)
        #expect(!lines.events.contains { $0.hasPrefix("✓") })
        operation.removeNetworkObserver(all)
        let service = with(NetworkBase(bench.server.url("/"))) { $0.session = bench.session }
        let base = service
        let count = all.events.count
        let group = GroupOperation { group in try await group.run(base.get("a", as: [Int].self)) }
        group.addNetworkObserver(all)
        group.removeNetworkObserver(all)
        #expect(try await group.run() == [1])
        #expect(all.events.count == count)
    }

    @Test func `archives and traces can be emptied without losing running operations`() async throws {
        let bench = try OperationBench(), archive = NetworkArchive(), trace = NetworkTrace(), log = EventLog()
        let gate = Gate()
        bench.server.route("GET", "/") { _ in .text("Hello") }
        bench.server.route("GET", "/slow") { _ in .text("late").after(gate) }
        func observed(_ target: String) -> NetworkDataOperation<String> {
            let operation = bench.text(target)
            for observer in [archive, trace, log] as [any NetworkObserver] { operation.addNetworkObserver(observer) }
            return operation
        }
        func names(_ data: Data) throws -> String { String(decoding: data, as: UTF8.self) }
        let slow = observed("/slow")
        await bench.server.isReached(by: slow)
        #expect(try await observed("/").run() == "Hello")
        await log.ended(1)
        let (first, timeline) = (try names(archive.takeHAR()), try names(trace.takeChromeTrace()))
        #expect(first.contains("attempt 1") && !first.contains("/slow") && archive.count == 0)
        #expect(timeline.contains("/slow") && timeline.components(separatedBy: "\"attempt 1\"").count == 3)
        gate.open()
        #expect(await slow.finalOutcome.result == "late")
        await log.ended(2)
        #expect(try names(trace.chromeTrace()).components(separatedBy: "\"attempt 1\"").count == 2)
        #expect(try names(archive.takeHAR()).contains("/slow"))
        _ = try trace.takeChromeTrace()
        #expect(try !names(trace.chromeTrace()).contains("attempt 1") && archive.count == 0)
        #expect(try !names(archive.har()).contains("/slow"))
    }

    @Test func `suspensions count toward the limit of a trace`() throws {
        let trace = NetworkTrace(limit: 10)
        for id in 1...10 as ClosedRange<UInt64> {
            trace.observe(NetworkEvent(.operationBegan, operationID: id, attempt: 0))
            for _ in 0..<60 { trace.observe(NetworkEvent(.suspended, operationID: id, attempt: 0)) }
        }
        #expect(trace.forgottenCount > 0)
    }
}

@Suite("Entries of a log", .timeLimit(.minutes(3)))
struct LogEntryTests {
    @Test func `each entry names its operation and its severity`() async throws {
        let bench = try OperationBench(), log = EventLog()
        let entries = EventRecorder<(severity: NetworkLog.Severity, id: UInt64, text: String)>()
        bench.server.route("GET", "/") { $0.number < 1 ? .status(503) : .text("Hello") }
        let written = NetworkLog { severity, event, text in entries.record((severity, event.operationID, text)) }
        let operation = bench.text()
        operation.networkAttempts.changePolicies { $0[.manual] = Again(most: 2) }
        operation.addNetworkObserver(written)
        operation.addNetworkObserver(written)
        operation.addNetworkObserver(log)
        #expect(try await operation.run() == "Hello")
        await log.ended()
        let id = try #require(log.events.events.first).operationID
        let all = entries.events
        #expect(all.allSatisfy { $0.id == id && $0.text.dropFirst(2).hasPrefix("#\(id) ") }, "\(all)")
        #expect(all.map { $0.text.prefix(1) } == ["→", "←", "✗", "…", "→", "←", "✓"])
        #expect(all.map(\.severity) == [.debug, .debug, .error, .notice, .debug, .debug, .debug])
        #expect("\(NetworkLog.Severity.notice)" == "notice" && .debug < NetworkLog.Severity.error)
    }

    @Test func `a form is logged with its parameters, without secrets`() async throws {
        let bench = try OperationBench(), lines = EventRecorder<String>()
        bench.server.route("POST", "/") { _ in .text("done") }
        let form = RequestBody.data(Data("user=anna&password=S3CRET".utf8)).withContentType(
            "application/x-www-form-urlencoded")
        let operation = bench.upload(body: form)
        operation.addNetworkObserver(NetworkLog(level: .bodies) { lines.record($0) })
        #expect(try await operation.run() == "done")
        #expect(lines.events.first?.hasSuffix("\n  user=anna&password=***") == true, "\(lines.events)")
    }
}
