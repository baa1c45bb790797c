// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationBackgroundSessions
import OperationNetworking
import OperationTestKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A system task that the test controls.
private final class ScriptedTransfer: SystemTask {
    struct State {
        var calls: [String] = []
        var taskDescription: String?
        var response: URLResponse?
        var isFinished = false
    }

    let taskIdentifier: Int
    let originalRequest: URLRequest?
    let isUpload: Bool
    let resumeData: Data?
    let bodyFile: URL?
    let state = Locked(State())

    init(
        _ number: Int, _ request: URLRequest?, isUpload: Bool = false, resumeData: Data? = nil, bodyFile: URL? = nil
    ) {
        (taskIdentifier, originalRequest, self.isUpload) = (number, request, isUpload)
        (self.resumeData, self.bodyFile) = (resumeData, bodyFile)
    }

    var calls: [String] { state.withLock { $0.calls } }
    var isFinished: Bool { state.withLock { $0.isFinished } }
    var response: URLResponse? { state.withLock { $0.response } }
    var taskDescription: String? {
        get { state.withLock { $0.taskDescription } }
        set { state.withLock { $0.taskDescription = newValue } }
    }

    func resume() { state.withLock { $0.calls.append("resume") } }
    func suspend() { state.withLock { $0.calls.append("suspend") } }
    func cancel() { state.withLock { $0.calls.append("cancel") } }
}

/// A system that keeps tasks and reports the results that the test sets.
private final class ScriptedBackgroundSystem: BackgroundSystem {
    private let tasks: Locked<[ScriptedTransfer]>
    /// The work that a delegate does when the system creates a task.
    let whenMade = Locked<(@Sendable () -> Void)?>(nil)
    /// Whether the system creates no task from resume data.
    let refusesResumeData = Locked(false)

    init(_ running: [ScriptedTransfer] = []) { tasks = Locked(running) }

    var all: [ScriptedTransfer] { tasks.withLock { $0 } }

    func makeDownload(_ request: URLRequest) -> any SystemTask { add { ScriptedTransfer($0, request) } }

    func makeDownload(continuing resumeData: Data) throws(NetworkError) -> any SystemTask {
        if refusesResumeData.withLock({ $0 }) { throw NetworkError(.sessionUnavailable) }
        return add { ScriptedTransfer($0, nil, resumeData: resumeData) }
    }

    func makeUpload(_ request: URLRequest, from file: URL) -> any SystemTask {
        add { ScriptedTransfer($0, request, isUpload: true, bodyFile: file) }
    }

    func findTasks(_ completion: @escaping @Sendable ([any SystemTask]) -> Void) { completion(all) }

    private func add(_ make: (Int) -> ScriptedTransfer) -> ScriptedTransfer {
        let task = tasks.withLock { tasks in
            let task = make(tasks.count + 1)
            tasks.append(task)
            return task
        }
        whenMade.withLock { $0 }?()
        return task
    }
}

/// A producer that waits for the test before it produces its bytes.
private final class Slow: BodyProducer {
    let asked = Gate()
    let isReady = Locked(false)
    let waker = Locked<BodyWaker?>(nil)
    let isGiven = Locked(false)

    func produce(into buffer: UnsafeMutableRawBufferPointer, waker: BodyWaker) throws -> BodyPortion {
        self.waker.withLock { $0 = waker }
        asked.open()
        guard isReady.withLock({ $0 }) else { return .notYet }
        guard !isGiven.withLock({ exchange(&$0, with: true) }) else { return .end }
        buffer[0] = 65
        return .bytes(1)
    }

    func go() {
        isReady.withLock { $0 = true }
        waker.withLock { $0 }?.wake()
    }
}

/// A background session with a scripted system in its own folder.
private final class BackgroundBench: Sendable {
    let folder: URL
    let system: ScriptedBackgroundSystem
    let clock = ManualClock()
    let session: BackgroundTransfers

    init(running: [ScriptedTransfer] = [], in folder: URL? = nil) {
        self.folder =
            folder ?? FileManager.default.temporaryDirectory.appendingPathComponent("background-\(UUID().uuidString)")
        system = ScriptedBackgroundSystem(running)
        session = BackgroundTransfers("test", in: self.folder, clock: clock)
        session.connect(.success(system))
    }

    func remove() { try? FileManager.default.removeItem(at: folder) }

    var files: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []).sorted() }

    /// Waits until the session has completed all posted work.
    func settle() async {
        for _ in 0..<3 { _ = await session.findOrphans() }
    }

    func start(_ request: NetworkRequest, _ recorder: RecordingReceiver) -> any NetworkTask {
        let task = session.makeTask(with: request, receiver: recorder)
        task.resume()
        return task
    }

    /// Starts a download, and returns its task and the task of the system.
    func download(
        _ recorder: RecordingReceiver, _ react: (any NetworkTask) -> Void = { _ in }
    ) async throws -> (task: any NetworkTask, transfer: ScriptedTransfer) {
        let task = start(try NetworkRequest(url: BackgroundBench.url("file")), recorder)
        react(task)
        await settle()
        return (task, try #require(system.all.first))
    }

    /// Starts an upload, and returns the task of the system.
    func upload(_ text: String, _ recorder: RecordingReceiver) async throws -> ScriptedTransfer {
        let url = try BackgroundBench.url("file")
        _ = start(try NetworkRequest("POST", url: url, body: .data(Data(text.utf8))), recorder)
        try await waitUntil("an upload") { [system] in system.all.first?.calls == ["resume"] }
        return try #require(system.all.first)
    }

    /// Starts an upload, and waits until its producer was asked for bytes.
    func upload(from producer: Slow, _ recorder: RecordingReceiver) async throws -> any NetworkTask {
        let body = RequestBody.stream(canBeSentAgain: false) { producer }
        let task = start(try NetworkRequest("PUT", url: BackgroundBench.url("file"), body: body), recorder)
        await producer.asked.passage()
        return task
    }

    func hasNoFiles() async throws {
        try await waitUntil("no file") { [folder] in
            (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) == []
        }
    }

    /// Simulates that the system wrote a body to a file and completed the transfer.
    func complete(
        _ task: ScriptedTransfer, _ body: String, status: Int = 200, headers: [String: String] = [:]
    ) throws {
        let location = FileManager.default.temporaryDirectory.appendingPathComponent("system-\(UUID().uuidString)")
        try Data(body.utf8).write(to: location)
        session.saved(task.taskIdentifier, location)
        #expect(!FileManager.default.fileExists(atPath: location.path), "The file was not taken over in time.")
        try end(task, status: status, headers: headers)
    }

    func end(
        _ task: ScriptedTransfer, status: Int = 200, headers: [String: String] = [:], error: (any Error)? = nil,
        resumeData: Data? = nil
    ) throws {
        let response = HTTPURLResponse(
            url: try BackgroundBench.url("file"), statusCode: status, httpVersion: nil, headerFields: headers)
        task.state.withLock {
            $0.response = error == nil ? response : nil
            $0.isFinished = true
        }
        session.ended(task, error, resumeData: resumeData)
    }

    static func url(_ path: String) throws -> URL { try #require(URL(string: "https://example.com/\(path)")) }
}

/// Records orphans and handlers in the order of their calls.
private final class BackgroundCalls: Sendable {
    struct Record {
        var names: [String] = []
        var orphans: [BackgroundTransfers.Orphan] = []
    }

    private let record = Locked(Record())

    var names: [String] { record.withLock { $0.names } }
    var orphans: [BackgroundTransfers.Orphan] { record.withLock { $0.orphans } }

    func note(_ name: String) { record.withLock { $0.names.append(name) } }

    var rule: BackgroundTransfers.Rule {
        { orphan in
            self.record.withLock {
                $0.orphans.append(orphan)
                $0.names.append("orphan")
            }
        }
    }

    func wait(for count: Int) async throws {
        try await waitUntil("\(count) calls") { self.names.count >= count }
    }
}

/// Tests a background session without a Mac: everything except the calls of `URLSession`.
@Suite(.timeLimit(.minutes(3)))
final class BackgroundTransfersTests {
    private static let lost = URLError(.networkConnectionLost)
    private let bench = BackgroundBench()
    private let recorder = RecordingReceiver()

    deinit { bench.remove() }

    @Test func `a download is delivered from its file, which is removed`() async throws {
        let task = try await bench.download(recorder).transfer
        #expect(task.calls == ["resume"])
        // The time limit is the session's limit.
        let usual = URLRequest(url: try BackgroundBench.url("file"))
        #expect(task.originalRequest?.timeoutInterval == usual.timeoutInterval)
        try bench.complete(task, String(repeating: "x", count: 200_000), headers: ["Content-Length": "200000"])
        let record = await recorder.end()
        #expect(record.status == 200 && record.bodyCount == 200_000 && record.error == nil && record.disorder == [])
        #expect(record.isOrderly && record.metrics != nil)
        await bench.settle()
        #expect(bench.files == [])
    }

    @Test func `a delegate may close the session while a transfer is created`() async throws {
        bench.system.whenMade.withLock { $0 = { [session = bench.session] in session.close() } }
        _ = bench.start(try NetworkRequest(url: BackgroundBench.url("file")), recorder)
        #expect(await recorder.end().code == .sessionClosed)
        #expect(bench.system.all.map(\.calls) == [["resume", "cancel"]])
    }

    @Test func `closing the session waits for a transfer that another thread creates`() async throws {
        let (isMaking, mayContinue, order) = (Gate(), Gate(), EventRecorder<String>())
        bench.system.whenMade.withLock {
            $0 = {
                isMaking.open()
                mayContinue.wait()
                order.record("made")
            }
        }
        _ = bench.start(try NetworkRequest(url: BackgroundBench.url("file")), recorder)
        await isMaking.passage()
        Thread { [session = bench.session] in
            session.close()
            order.record("closed")
        }.start()
        try await waitUntil("the closing") { [session = bench.session] in session.isClosed }
        mayContinue.open()
        #expect(await order.events(atLeast: 2) == ["made", "closed"])
        #expect(await recorder.end().code == .sessionClosed)
    }

    @Test func `a file shorter than its Content-Length fails with truncatedBody`() async throws {
        let task = try await bench.download(recorder).transfer
        try bench.complete(task, "half", headers: ["Content-Length": "8"])
        let record = await recorder.end()
        #expect(record.code == .truncatedBody && record.body.isEmpty)
    }

    @Test func `a response file that cannot be moved fails with fileUnwritable`() async throws {
        let task = try await bench.download(recorder).transfer
        bench.session.saved(task.taskIdentifier, bench.folder.appendingPathComponent("missing"))
        try bench.end(task)
        #expect(await recorder.end().code == .fileUnwritable)
    }

    @Test func `an in-memory body is sent from a file, which is removed at the end`() async throws {
        let task = try await bench.upload("hello", recorder)
        let file = try #require(task.bodyFile)
        #expect(try Data(contentsOf: file) == Data("hello".utf8))
        #expect(task.taskDescription == file.lastPathComponent && bench.files == [file.lastPathComponent])
        bench.session.sent(task.taskIdentifier, 3)
        bench.session.received(task.taskIdentifier, Data("done".utf8))
        try bench.end(task, status: 201)
        let record = await recorder.end()
        #expect(record.status == 201 && record.text == "done" && record.progress == [3, 5])
        await bench.settle()
        #expect(bench.files == [])
    }

    @Test func `a large response to an upload goes through a file`() async throws {
        let task = try await bench.upload("hello", recorder)
        for _ in 0..<5 { bench.session.received(task.taskIdentifier, Data(repeating: 65, count: 50_000)) }
        try bench.end(task)
        let record = await recorder.end()
        #expect(record.bodyCount == 250_000 && record.error == nil)
        await bench.settle()
        #expect(bench.files == [])
    }

    @Test func `an error of the system is delivered`() async throws {
        let task = try await bench.download(recorder).transfer
        try bench.end(task, error: Self.lost)
        #expect(await recorder.end().code == .connectionLost)
    }

    @Test func `an upload whose second connection is refused does not count as unsent`() async throws {
        let task = try await bench.upload("hello", recorder)
        bench.session.sent(task.taskIdentifier, 3)
        let text = "Failed to connect to example.com port 443: Connection refused"
        try bench.end(
            task, error: URLError(.cannotConnectToHost, userInfo: [NSLocalizedDescriptionKey: text]))
        let record = await recorder.end()
        #expect(record.code == .cannotConnect && record.error?.isUnsent == false)
    }

    @Test func `a canceled task cancels the system's task, and its late end changes nothing`() async throws {
        let (task, scripted) = try await bench.download(recorder)
        task.cancel()
        let record = await recorder.end()
        #expect(record.code == .cancelled && scripted.calls == ["resume", "cancel"])
        try bench.complete(scripted, "late")
        await bench.settle()
        #expect(recorder.record.ends == 1 && bench.files == [])
    }

    @Test func `canceling while the body is written leaves no system task and no file`() async throws {
        let producer = Slow()
        let task = try await bench.upload(from: producer, recorder)
        task.cancel()
        #expect(await recorder.end().code == .cancelled)
        try await bench.hasNoFiles()
        #expect(bench.system.all.isEmpty)
    }

    @Test func `a task suspended while its body is written starts when it is resumed`() async throws {
        let producer = Slow()
        let task = try await bench.upload(from: producer, recorder)
        task.suspend()
        await bench.settle()
        producer.go()
        try await waitUntil("an upload") { [system = bench.system] in !system.all.isEmpty }
        await bench.settle()
        let scripted = try #require(bench.system.all.first)
        #expect(scripted.calls == [])
        task.resume()
        await bench.settle()
        #expect(scripted.calls == ["resume"])
        try bench.end(scripted)
        let record = await recorder.end()
        #expect(record.error == nil && bench.system.all.count == 1)
    }

    @Test func `a task suspended before its start is not passed to the system`() async throws {
        let task = bench.session.makeTask(
            with: try NetworkRequest(url: BackgroundBench.url("file")), receiver: recorder)
        task.suspend()
        await bench.settle()
        #expect(bench.system.all.isEmpty)
        task.resume()
        await bench.settle()
        #expect(bench.system.all.map(\.calls) == [["resume"]])
    }

    @Test func `a suspension is passed to the system's task, and a hold is not`() async throws {
        let (task, scripted) = try await bench.download(recorder) { $0.hold() }
        #expect(scripted.calls == ["resume"])
        task.suspend()
        await bench.settle()
        #expect(scripted.calls == ["resume", "suspend"])
        task.resume()
        await bench.settle()
        #expect(scripted.calls == ["resume", "suspend", "resume"])
        try bench.complete(scripted, "body")
        await bench.settle()
        #expect(recorder.record.heads.isEmpty && recorder.record.ends == 0 && bench.files.count == 1)
        task.proceed()
        let record = await recorder.end()
        #expect(record.text == "body" && record.error == nil)
        await bench.settle()
        #expect(bench.files == [])
    }

    @Test func `a receiver that holds between two parts of a file receives the rest later`() async throws {
        let recorder = RecordingReceiver { if case .bytes = $0 { $1.hold() } }
        let (task, scripted) = try await bench.download(recorder)
        try bench.complete(scripted, String(repeating: "x", count: 150_000))
        for part in [65_536, 131_072, 150_000] {
            try await waitUntil("\(part) bytes") { recorder.record.bodyCount == part }
            await bench.settle()
            #expect(recorder.record.bodyCount == part && recorder.record.ends == 0)
            task.proceed()
        }
        #expect(await recorder.end().error == nil)
    }

    @Test func `a session without a system ends each task with its reason, and calls handlers`() async throws {
        // The clock does not advance, so no silence ends.
        let session = BackgroundTransfers("", in: FileManager.default.temporaryDirectory, clock: ManualClock())
        let calls = BackgroundCalls()
        session.keep { calls.note("handler") }
        session.connect(.failure(NetworkError(code: .sessionUnavailable, phase: .waiting, message: "empty")))
        let record = try await session.run(BackgroundBench.url("file"))
        #expect(record.code == .sessionUnavailable)
        try await calls.wait(for: 1)
        #expect(await session.findOrphans().isEmpty)
    }

    @Test func `a closed session creates no task and calls its handlers`() async throws {
        let calls = BackgroundCalls()
        bench.session.keep { calls.note("handler") }
        _ = bench.start(try NetworkRequest(url: BackgroundBench.url("file")), recorder)
        await bench.settle()
        bench.session.close()
        #expect(await recorder.end().code == .sessionClosed)
        #expect(try await bench.session.run(BackgroundBench.url("other")).code == .sessionClosed)
        try await calls.wait(for: 1)
        try bench.session.restart(URLRequest(url: BackgroundBench.url("file")), resumeData: nil, isUpload: false)
        await bench.settle()
        #expect(bench.system.all.count == 1)
    }

    @Test func `a download that failed is continued by the next task with its request`() async throws {
        let first = RecordingReceiver(), second = RecordingReceiver()
        let request = try NetworkRequest(url: BackgroundBench.url("file"))
        _ = bench.start(request, first)
        await bench.settle()
        try bench.end(bench.system.all[0], error: Self.lost, resumeData: Data([1, 2]))
        #expect(await first.end().code == .connectionLost)
        // Another request does not use the resume data.
        let other = try NetworkRequest(url: BackgroundBench.url("file"), headers: ["X-A": "b"])
        _ = bench.start(other, RecordingReceiver())
        _ = bench.start(request, second)
        await bench.settle()
        #expect(bench.system.all.map(\.resumeData) == [nil, nil, Data([1, 2])])
        let task = bench.system.all[2]
        bench.session.continued(task.taskIdentifier)
        try bench.complete(
            task, "0123456789", status: 206, headers: ["Content-Range": "bytes 4-9/10", "Content-Length": "6"])
        let record = await second.end()
        #expect(record.status == 200 && record.text == "0123456789" && record.error == nil)
        #expect(record.heads.first?.headers.contains("Content-Range") == false)
    }

    @Test func `if the system refuses resume data, the download starts again from its first byte`() async throws {
        let first = RecordingReceiver(), second = RecordingReceiver()
        let request = try NetworkRequest(url: BackgroundBench.url("file"))
        _ = bench.start(request, first)
        await bench.settle()
        try bench.end(bench.system.all[0], error: Self.lost, resumeData: Data([1]))
        _ = await first.end()
        _ = bench.start(request, second)
        await bench.settle()
        try bench.end(bench.system.all[1], error: URLError(.unsupportedURL))
        await bench.settle()
        #expect(bench.system.all.map(\.resumeData) == [nil, Data([1]), nil])
        #expect(bench.system.all[2].calls == ["resume"] && second.record.ends == 0)
        try bench.complete(bench.system.all[2], "whole")
        #expect(await second.end().text == "whole")
    }

    @Test func `a download whose resume data the system does not accept is sent only once`() async throws {
        let first = RecordingReceiver(), second = RecordingReceiver()
        let request = try NetworkRequest(url: BackgroundBench.url("file"))
        _ = bench.start(request, first)
        await bench.settle()
        try bench.end(bench.system.all[0], error: Self.lost, resumeData: Data([1]))
        _ = await first.end()
        bench.system.refusesResumeData.withLock { $0 = true }
        _ = bench.start(request, second)
        await bench.settle()
        try bench.end(bench.system.all[1], error: Self.lost)
        #expect(await second.end().code == .connectionLost)
        #expect(bench.system.all.map(\.resumeData) == [nil, nil])
    }

    @Test(
        arguments: [([:], [nil, Data([0]), Data([1])]), (["Range": "bytes=1-"], [nil, nil, nil])]
            as [(HeaderFields, [Data?])])
    func `a download that fails more than once is continued each time, unless it has a Range header`(
        headers: HeaderFields, resumeData: [Data?]
    ) async throws {
        let request = try NetworkRequest(url: BackgroundBench.url("file"), headers: headers)
        for number in 0..<3 {
            let recorder = RecordingReceiver()
            _ = bench.start(request, recorder)
            await bench.settle()
            let task = try #require(bench.system.all.dropFirst(number).first)
            try bench.end(task, error: Self.lost, resumeData: Data([UInt8(number)]))
            _ = await recorder.end()
        }
        #expect(bench.system.all.map(\.resumeData) == resumeData)
    }

    @Test func `an orphan is delivered to the rule, and its file is removed afterward`() async throws {
        let running = ScriptedTransfer(1, URLRequest(url: try BackgroundBench.url("file")))
        let bench = BackgroundBench(running: [running])
        defer { bench.remove() }
        let texts = Locked<[String?]>([])
        bench.session.setRule { orphan in
            let text = orphan.file.flatMap { try? String(contentsOf: $0.url, encoding: .utf8) }
            texts.withLock { $0.append(text) }
        }
        try bench.complete(running, "orphan")
        try await waitUntil("the orphan") { texts.withLock { $0 } == ["orphan"] }
        try await bench.hasNoFiles()
    }

    @Test func `a handler is called after all earlier orphans, including held ones`() async throws {
        let running = (1...3).map { ScriptedTransfer($0, nil) }
        let bench = BackgroundBench(running: running), calls = BackgroundCalls()
        defer { bench.remove() }
        try bench.complete(running[0], "a")
        bench.session.setRule(calls.rule)
        bench.session.keep { calls.note("handler") }
        try bench.complete(running[1], "b")
        try bench.complete(running[2], "c", status: 404)
        bench.session.finishedEvents()
        try await calls.wait(for: 4)
        #expect(calls.names == ["orphan", "orphan", "orphan", "handler"])
        #expect(calls.orphans.map { $0.response?.statusCode } == [200, 200, 404])
    }

    @Test func `a late handler is called after two seconds of silence`() async throws {
        let calls = BackgroundCalls()
        bench.session.finishedEvents()
        bench.session.keep { calls.note("handler") }
        await bench.settle()
        bench.clock.advance(by: .seconds(1))
        bench.session.continued(1)
        await bench.settle()
        bench.clock.advance(by: .seconds(1))
        await bench.settle()
        #expect(calls.names.isEmpty && bench.clock.pendingCount == 1)
        bench.clock.advance(by: .seconds(2))
        try await calls.wait(for: 1)
        #expect(bench.clock.pendingCount == 0)
    }

    @Test func `orphans that were removed are reported with an error`() async throws {
        let calls = BackgroundCalls()
        for number in 1...1_002 { try bench.end(ScriptedTransfer(number, nil)) }
        bench.session.setRule(calls.rule)
        try await calls.wait(for: 1_001)
        let last = calls.orphans.last?.error
        #expect(last?.code == .resourcesExhausted && last?.message.contains("2 transfers") == true)
        #expect(calls.orphans.count == 1_001)
    }

    @Test func `an orphan is restarted with its resume data or its request, and an upload is refused`() async throws {
        let request = URLRequest(url: try BackgroundBench.url("file"))
        try bench.session.restart(request, resumeData: Data([1]), isUpload: false)
        try bench.session.restart(request, resumeData: nil, isUpload: false)
        await bench.settle()
        #expect(bench.system.all.map(\.resumeData) == [Data([1]), nil])
        #expect(bench.system.all.map(\.calls) == [["resume"], ["resume"]])
        let upload = #expect(throws: NetworkError.self) {
            try bench.session.restart(request, resumeData: nil, isUpload: true)
        }
        #expect(upload?.code == .bodyNotRepeatable)
        let nothing = #expect(throws: NetworkError.self) {
            try bench.session.restart(nil, resumeData: nil, isUpload: false)
        }
        #expect(nothing?.code == .invalidURL)
    }

    @Test func `a request is attached to a transfer of an earlier run, and is not sent`() async throws {
        let url = try BackgroundBench.url("file")
        let finished = ScriptedTransfer(3, nil)
        finished.state.withLock { $0.isFinished = true }
        let running = [ScriptedTransfer(1, URLRequest(url: url)), ScriptedTransfer(2, nil), finished]
        let bench = BackgroundBench(running: running)
        defer { bench.remove() }
        let calls = BackgroundCalls(), recorder = RecordingReceiver()
        bench.session.setRule(calls.rule)
        _ = bench.start(try NetworkRequest(url: BackgroundBench.url("own")), RecordingReceiver())
        await bench.settle()
        let orphans = await bench.session.findOrphans()
        #expect(orphans.map(\.taskIdentifier) == [1, 2])
        bench.session.makeTask(with: try NetworkRequest(url: url), receiver: recorder, attachedTo: orphans[0]).resume()
        await bench.settle()
        #expect(bench.system.all.count == 4)
        #expect(await bench.session.findOrphans().map(\.taskIdentifier) == [2])
        try bench.complete(bench.system.all[0], "earlier")
        let record = await recorder.end()
        #expect(record.text == "earlier" && record.error == nil && calls.names == [])
    }

    @Test func `a request is not attached to a transfer that has ended, nor to another URL`() async throws {
        let url = try BackgroundBench.url("file")
        let running = [1, 2].map { ScriptedTransfer($0, URLRequest(url: url)) }
        let bench = BackgroundBench(running: running), calls = BackgroundCalls()
        defer { bench.remove() }
        bench.session.setRule(calls.rule)
        let orphans = await bench.session.findOrphans()
        try bench.complete(running[0], "ended")
        for (orphan, path) in zip(orphans, ["file", "other"]) {
            let recorder = RecordingReceiver()
            let request = try NetworkRequest(url: BackgroundBench.url(path))
            bench.session.makeTask(with: request, receiver: recorder, attachedTo: orphan).resume()
            #expect(await recorder.end().code == .sessionUnavailable)
        }
        try await calls.wait(for: 1)
        #expect(bench.system.all.count == 2 && running[1].calls == [])
    }

    @Test func `a file that a killed process took over is used when the end is reported`() async throws {
        let first = BackgroundBench()
        defer { first.remove() }
        let location = FileManager.default.temporaryDirectory.appendingPathComponent("system-\(UUID().uuidString)")
        try Data("kept".utf8).write(to: location)
        // A killed process runs no code at its end, so this file remains.
        try FileManager.default.moveItem(at: location, to: first.folder.appendingPathComponent("response-7"))
        let running = ScriptedTransfer(7, nil)
        let second = BackgroundBench(running: [running], in: first.folder), calls = BackgroundCalls()
        defer { second.remove() }
        let text = Locked<String?>(nil)
        second.session.setRule { orphan in
            let found = orphan.file.flatMap { try? String(contentsOf: $0.url, encoding: .utf8) }
            text.withLock { $0 = found }
            calls.note("orphan")
        }
        try second.end(running)
        try await calls.wait(for: 1)
        #expect(text.withLock { $0 } == "kept")
        try await second.hasNoFiles()
    }

    @Test func `a download whose file is missing fails with transferFailed`() async throws {
        let running = ScriptedTransfer(1, nil)
        let bench = BackgroundBench(running: [running]), calls = BackgroundCalls()
        defer { bench.remove() }
        bench.session.setRule(calls.rule)
        try bench.end(running)
        try await calls.wait(for: 1)
        #expect(calls.orphans.first?.error?.code == .transferFailed && calls.orphans.first?.file == nil)
    }

    @Test func `the body file of an earlier run's upload is removed at its end`() async throws {
        let upload = ScriptedTransfer(3, nil, isUpload: true)
        upload.taskDescription = "body-of-earlier-run"
        let bench = BackgroundBench(running: [upload])
        defer { bench.remove() }
        try Data("old".utf8).write(to: bench.folder.appendingPathComponent("body-of-earlier-run"))
        try bench.end(upload)
        await bench.settle()
        #expect(bench.files == [])
    }

    @Test func `files older than the lifetime of a transfer are removed when a session is created`() async throws {
        let first = BackgroundBench()
        defer { first.remove() }
        for name in ["response-1", "body-2"] { try Data().write(to: first.folder.appendingPathComponent(name)) }
        let old = first.folder.appendingPathComponent("body-2").path
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -1_000)], ofItemAtPath: old)
        let second = BackgroundTransfers("test", in: first.folder)
        second.connect(.success(ScriptedBackgroundSystem()), lifetime: 500)
        for _ in 0..<3 { _ = await second.findOrphans() }
        #expect(first.files == ["response-1"])
    }
}
