// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore
import OperationNetworking

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The system's part of a background session, which is `URLSession` on Apple platforms and a script in tests.
package protocol BackgroundSystem: Sendable {
    func makeDownload(_ request: URLRequest) throws(NetworkError) -> any SystemTask
    func makeDownload(continuing resumeData: Data) throws(NetworkError) -> any SystemTask
    func makeUpload(_ request: URLRequest, from file: URL) throws(NetworkError) -> any SystemTask
    func findTasks(_ completion: @escaping @Sendable ([any SystemTask]) -> Void)
}

/// A background session without the system, which passes the system's events to the ledger and takes the resulting
/// actions.
///
/// The ledger is only used on one serial queue, which is also the queue of the adapter. The queue starts when the
/// system is connected. Closures of the program are called on a second queue, so that they delay neither the system nor
/// other transfers.
package final class BackgroundTransfers: NetworkSession {
    package typealias Rule = @Sendable (Orphan) -> Void
    package typealias Handler = @MainActor @Sendable () -> Void
    fileprivate typealias Ledger = BackgroundLedger<URLSessionEvent.Handler, Response, Rule, Handler>

    /// The end of a transfer that no operation waits for.
    package struct Orphan: Sendable {
        package var request: URLRequest?
        package var response: HTTPURLResponse?
        package var file: SpooledFile?
        package var body: Data?
        package var error: NetworkError?
        package var resumeData: Data?
        package var isUpload = false
    }

    /// The system's report on a transfer that ended.
    fileprivate struct Response: Sendable {
        let request: URLRequest?
        let response: HTTPURLResponse?
        let resumeData: Data?
        let isUpload: Bool
    }

    private let queue: DispatchQueue
    private let deliveries = DispatchQueue(label: "OperationKit.BackgroundSession.Orphans")
    private let folder: URL
    private let clock: any OperationClock
    private let taskMaker: BackgroundTaskMaker
    private let carrier: URLSessionAdapter

    /// Creates a session that waits for `connect`.
    ///
    /// - Parameters:
    ///   - name: The identifier of the session, which is part of the path of its files.
    ///   - folder: A folder for files that outlive the process.
    ///   - clock: The clock that measures the silence before a late handler is called.
    package init(_ name: String, in folder: URL? = nil, clock: any OperationClock = .system) {
        queue = DispatchQueue(
            label: "OperationKit.BackgroundSession", attributes: .initiallyInactive, autoreleaseFrequency: .workItem)
        self.folder = folder ?? SpooledFile.backgroundFolder(name)
        self.clock = clock
        taskMaker = BackgroundTaskMaker()
        carrier = URLSessionAdapter(taskMaker, on: queue, spoolingInto: self.folder)
    }

    /// Begins to work with the system, or with the reason why there is none.
    ///
    /// Call this method once.
    ///
    /// - Parameter lifetime: The number of seconds after which the system has given up each transfer. Older files are
    ///   removed.
    package func connect(_ system: Result<any BackgroundSystem, NetworkError>, lifetime: TimeInterval = .infinity) {
        // Nothing runs on the queue yet.
        taskMaker.system = system
        if case .success = system {
            // Without the folder, each file results in an error.
            try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        }
        queue.activate()
        perform { SpooledFile.removeFiles(in: self.folder, olderThan: lifetime) }
    }

    package var isClosed: Bool { carrier.isClosedNow }

    /// Closes the session after the system has invalidated it, because no more tasks may be created in it.
    package func close() {
        carrier.close()
        // The system reports no more events.
        perform { for handler in self.taskMaker.ledger.finishEvents() { self.call(handler) } }
    }

    /// The system, or `nil` if no more tasks can be created in it.
    private var system: (any BackgroundSystem)? { carrier.isClosedNow ? nil : try? taskMaker.system.get() }

    private func perform(_ work: @escaping @Sendable () -> Void) { queue.async(execute: work) }
}

// Calls of the program.
extension BackgroundTransfers {
    package func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        carrier.makeTask(with: request, receiver: receiver)
    }

    /// Creates a task that waits for a transfer that the system already carries out.
    package func makeTask(
        with request: NetworkRequest, receiver: any NetworkReceiver, attachedTo existing: any SystemTask
    ) -> any NetworkTask {
        carrier.makeTask(with: request, receiver: receiver, attachedTo: existing)
    }

    /// Sets the closure for orphans, and delivers the orphans that were held.
    package func setRule(_ present: @autoclosure @escaping @Sendable () -> Rule?) {
        perform { [self] in
            let rule = present()
            let release = taskMaker.ledger.setRule(rule)
            guard let rule else { return }
            for (answer, ending) in release.orphans { deliver(rule, answer, ending) }
            guard release.removed > 0 else { return }
            let error = NetworkError(
                code: .resourcesExhausted, phase: .saving,
                message:
                    "\(release.removed) transfers ended before onOrphan was set, and were removed, because the session "
                    + "keeps at most \(Ledger.mostHeld). Pass onOrphan when you create the session.")
            deliveries.async { rule(Orphan(error: error)) }
        }
    }

    /// Keeps a handler of the application's delegate until all events have been delivered.
    package func keep(_ handler: @escaping Handler) {
        perform { [self] in
            guard system != nil else { return call(handler) }
            lookAgain(taskMaker.ledger.keep(handler))
        }
    }

    private func lookAgain(_ silence: Ledger.Silence) {
        _ = clock.schedule(after: silence.duration) { [self] in
            perform { [self] in
                switch taskMaker.ledger.lookAgain(silence) {
                case .none: break
                case .wait(let silence): lookAgain(silence)
                case .call(let handler): call(handler)
                }
            }
        }
    }

    /// Calls a handler after the orphans before it, and after the receivers of transfers that ended before it.
    private func call(_ handler: @escaping Handler) {
        perform { self.deliveries.async { Task { @MainActor in handler() } } }
    }

    /// Starts the transfer of an orphan again, without an operation.
    package func restart(_ request: URLRequest?, resumeData: Data?, isUpload: Bool) throws(NetworkError) {
        guard !isUpload else {
            throw NetworkError(
                code: .bodyNotRepeatable, phase: .checking,
                message:
                    "An upload of an earlier run cannot be restarted, because its body is no longer known. "
                    + "Create an upload operation with the body.")
        }
        guard request != nil || resumeData != nil else {
            throw NetworkError(
                code: .invalidURL, phase: .checking,
                message: "The orphan has neither a request nor resume data, so there is nothing to restart.")
        }
        perform { [self] in
            guard let system else { return }
            // An operation with this request must not continue the same download.
            if let key = request.flatMap(Ledger.RequestKey.init) { _ = taskMaker.ledger.takeResumeData(for: key) }
            do throws(NetworkError) {
                try Self.makeDownload(request, continuing: resumeData, in: system).task.resume()
            } catch {
                // Another thread invalidated the session, or the system refuses the data.
                OperationDiagnostics.report(
                    .sessionStorage, by: "BackgroundSession", "A transfer was not restarted. \(error.message)")
            }
        }
    }

    /// Creates a download that continues from the resume data.
    ///
    /// If there is no such data, or the system refuses it, the method creates a new download.
    fileprivate static func makeDownload(
        _ request: URLRequest?, continuing resumeData: Data?, in system: any BackgroundSystem
    ) throws(NetworkError) -> (task: any SystemTask, isContinuing: Bool) {
        var refusal = URLSessionAdapter.closed
        if let resumeData {
            do throws(NetworkError) {
                return (try system.makeDownload(continuing: resumeData), true)
            } catch {
                refusal = error
            }
        }
        guard let request else { throw refusal }
        return (try system.makeDownload(request), false)
    }

    /// Finds the transfers that the system carries out and that no operation waits for.
    package func findOrphans() async -> [any SystemTask] {
        await withCheckedContinuation { continuation in
            perform { [self] in
                guard let system else { return continuation.resume(returning: []) }
                taskMaker.ledger.beginListing()
                system.findTasks { tasks in
                    self.perform {
                        let running = tasks.filter { !$0.isFinished }
                        let orphans = Set(self.taskMaker.ledger.list(running.map(\.taskIdentifier)))
                        continuation.resume(returning: running.filter { orphans.contains($0.taskIdentifier) })
                    }
                }
            }
        }
    }
}

// Events of the system, in its order.
extension BackgroundTransfers {
    /// Takes the file with the response of a download, which the system removes when this method returns.
    package func saved(_ number: Int, _ location: URL) {
        let file = SpooledFile.taking(location, into: folder, as: Self.name(number))
        perform { self.taskMaker.ledger.save(number, file) }
    }

    /// Handles a part of the response to an upload.
    package func received(_ number: Int, _ data: Data) {
        perform { [self] in
            guard let (bytes, file) = taskMaker.ledger.receive(number, data) else { return }
            taskMaker.ledger.save(number, SpooledFile.adding(bytes, to: file, in: folder))
        }
    }

    package func sent(_ number: Int, _ count: Int64) {
        perform { self.taskMaker.ledger.transfer(number)?(.sent(count)) }
    }

    package func measured(_ number: Int, _ metrics: TransferMetrics) {
        perform { self.taskMaker.ledger.transfer(number)?(.measured(metrics)) }
    }

    /// Records that the system continues a download with resume data.
    package func continued(_ number: Int) {
        perform { self.taskMaker.ledger.accept(number) }
    }

    package func ended(_ task: any SystemTask, _ error: (any Error)?, resumeData: Data?) {
        let response = task.response as? HTTPURLResponse
        let answer = Response(
            request: task.originalRequest, response: response, resumeData: resumeData, isUpload: task.isUpload)
        perform { [self] in
            let number = task.taskIdentifier
            if error == nil, !task.isUpload, !taskMaker.ledger.hasBody(number) {
                // A process that was killed may already have taken the file.
                let left = SpooledFile.left(Self.name(number), in: folder)
                taskMaker.ledger.save(number, left.map { .success($0) } ?? .failure(Self.missing))
            }
            let end = Ledger.End(
                failure: error.map { NetworkError.ofSession($0, phase: .receiving) }, resumeData: resumeData,
                key: answer.request.flatMap(Ledger.RequestKey.init))
            switch taskMaker.ledger.end(number, end, answer) {
            case .hold(let hasRemoved): if hasRemoved { recordRemoval() }
            case .conclude(let report, let ending): conclude(report, response, ending, error)
            case .startOver(let report): report(.startOver)
            case .deliverOrphan(let rule, let answer, let ending): deliver(rule, answer, ending)
            }
            // The method removes the body of an upload, which an earlier run may have written.
            if let name = task.taskDescription { _ = SpooledFile.left(name, in: folder) }
        }
    }

    package func finishedEvents() {
        perform { for handler in self.taskMaker.ledger.finishEvents() { self.call(handler) } }
    }

    private static var missing: NetworkError {
        NetworkError(
            code: .transferFailed, phase: .saving,
            message:
                "The system completed the download in an earlier run of the program, but its file no longer exists. "
                + "Download it again.")
    }

    private static func name(_ number: Int) -> String { "response-\(number)" }

    private func conclude(
        _ report: URLSessionEvent.Handler, _ response: HTTPURLResponse?, _ ending: Ledger.Ending, _ error: (any Error)?
    ) {
        // The adapter knows how far the transfer came, so it evaluates the system's own error.
        if let failure = error ?? ending.failure { return report(.end(failure)) }
        if ending.isContinued { report(.continued) }
        if let response { report(.response(response)) }
        if let file = ending.file { report(.file(file)) }
        if let body = ending.body { report(.bytes(body)) }
        report(.end(nil))
    }

    private func deliver(_ rule: @escaping Rule, _ answer: Response, _ ending: Ledger.Ending) {
        let orphan = Orphan(
            request: answer.request, response: answer.response, file: ending.file, body: ending.body,
            error: ending.failure, resumeData: answer.resumeData, isUpload: answer.isUpload)
        // The file is removed after the call.
        deliveries.async { withExtendedLifetime(orphan) { rule(orphan) } }
    }

    private func recordRemoval() {
        deliveries.async {
            OperationDiagnostics.report(
                .sessionStorage, by: "BackgroundSession",
                "More than \(Ledger.mostHeld) transfers ended before onOrphan was set, so the oldest was removed. "
                    + "Pass onOrphan when you create the session.")
        }
    }
}

/// The object that creates the tasks of a background session, on the queue of its adapter.
private final class BackgroundTaskMaker: URLSessionTaskMaking {
    // Sendable: only used on that queue, or before it runs.
    nonisolated(unsafe) var ledger = BackgroundTransfers.Ledger()
    nonisolated(unsafe) var system: Result<any BackgroundSystem, NetworkError> = .failure(URLSessionAdapter.closed)

    var isInBackground: Bool { true }

    func makeWork(
        _ request: NetworkRequest, _ body: URLSessionTransferBody, _ existing: (any SystemTask)?,
        _ report: @escaping URLSessionEvent.Handler
    ) throws(NetworkError) -> URLSessionWork {
        let system = try system.get()
        if let existing { return try adopt(existing, for: request, report) }
        // If no bytes arrive for as long as the session allows, the system tries again.
        let plain = URLRequest(carrying: request, timeout: nil)
        let task: any SystemTask
        switch body {
        case .none, .data:
            // A body of bytes was written to a file.
            let key = BackgroundTransfers.Ledger.RequestKey(plain)
            let resumeData = key.flatMap { ledger.takeResumeData(for: $0) }
            let made = try BackgroundTransfers.makeDownload(plain, continuing: resumeData, in: system)
            task = made.task
            ledger.begin(task.taskIdentifier, report, key, isContinuing: made.isContinuing)
        case .file(let region):
            task = try system.makeUpload(plain, from: region.url)
            ledger.begin(task.taskIdentifier, report)
        case .temporary(let file):
            task = try system.makeUpload(plain, from: file.url)
            // A later run of the program finds the file by its name and removes it.
            task.taskDescription = file.url.lastPathComponent
            ledger.begin(task.taskIdentifier, report)
        }
        return URLSessionWork(task: task, canBeSuspended: true)
    }

    private func adopt(
        _ task: any SystemTask, for request: NetworkRequest, _ report: @escaping URLSessionEvent.Handler
    ) throws(NetworkError) -> URLSessionWork {
        if let original = task.originalRequest {
            guard original.url == request.url, (original.httpMethod ?? "GET") == request.method else {
                throw NetworkError(
                    code: .sessionUnavailable, phase: .waiting,
                    message: "The request cannot be attached to the transfer, because its method or URL differs. "
                        + "Create the request with the method and the URL of the transfer.")
            }
        }
        guard ledger.adopt(task.taskIdentifier, report) else {
            throw NetworkError(
                code: .sessionUnavailable, phase: .waiting,
                message:
                    "No request can be attached to the transfer, because it has ended or an operation already waits "
                    + "for it. A transfer that ends without an operation is passed to onOrphan.")
        }
        return URLSessionWork(task: task, canBeSuspended: true)
    }

    func wake() {}
    func idle(_ action: @escaping @Sendable () -> Void) {}
    func rest() {}
}

extension BackgroundLedger.RequestKey {
    /// Creates the key of a request, or returns `nil` if a download of the request cannot be continued.
    init?(_ request: URLRequest) {
        guard let url = request.url, request.httpMethod ?? "GET" == "GET",
            request.value(forHTTPHeaderField: "Range") == nil
        else { return nil }
        self.init(method: "GET", url: url, headers: request.allHTTPHeaderFields ?? [:])
    }
}

// Files of transfers that outlive the process.
extension SpooledFile {
    /// The folder for files of a session, which outlive the process.
    ///
    /// The system may empty the folder if storage is low while the program does not run. An upload or a download whose
    /// file is gone then ends with an error.
    static func backgroundFolder(_ name: String) -> URL {
        let caches = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first
        let program = Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName
        return (caches ?? FileManager.default.temporaryDirectory)
            .appendingPathComponent("OperationKit").appendingPathComponent(program)
            .appendingPathComponent(name.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "session")
    }

    /// Appends bytes to a file, and creates a new file if `file` is `nil`.
    static func adding(_ bytes: Data, to file: SpooledFile?, in folder: URL) -> Result<SpooledFile, NetworkError> {
        let file = file ?? SpooledFile(folder.appendingPathComponent("body-\(UUID().uuidString)"))
        do {
            if !FileManager.default.fileExists(atPath: file.url.path) { try Data().write(to: file.url) }
            let handle = try FileHandle(forWritingTo: file.url)
            defer { try? handle.close() }
            try handle.seekToEnd()
            try handle.write(contentsOf: bytes)
            return .success(file)
        } catch {
            return .failure(cannotKeep(error as NSError))
        }
    }

    /// Returns a file that an earlier run of the program left, or `nil` if there is none.
    static func left(_ name: String, in folder: URL) -> SpooledFile? {
        guard name.hasPrefix("body-") || name.hasPrefix("response-"), !name.contains("/") else { return nil }
        let url = folder.appendingPathComponent(name)
        return FileManager.default.fileExists(atPath: url.path) ? SpooledFile(url) : nil
    }

    /// Removes files that are so old that no transfer needs them.
    static func removeFiles(in folder: URL, olderThan age: TimeInterval) {
        let files = try? FileManager.default.contentsOfDirectory(
            at: folder, includingPropertiesForKeys: [.contentModificationDateKey])
        for file in files ?? [] {
            let date = try? file.resourceValues(forKeys: [.contentModificationDateKey]).contentModificationDate
            if let date, -date.timeIntervalSinceNow > age { unlink(file.path) }
        }
    }
}
