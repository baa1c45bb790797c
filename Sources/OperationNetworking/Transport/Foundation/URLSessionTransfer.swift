// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The state of a running task of Foundation, which is used on the queue of its adapter.
package final class URLSessionTransfer: @unchecked Sendable {
    // Sendable: only used on that queue.

    let slot: SlotTable<URLSessionTransferTask>.Slot
    let beganAt: Int64
    private let request: NetworkRequest
    private let isInBackground: Bool
    private var work: URLSessionWork?
    private var isPaused = false
    /// The body, whose file may have to be kept.
    private var body = URLSessionTransferBody.none
    /// The length of the body, or `nil` until it is known.
    private var length: Int64?
    /// The body of the response, if it came in a file.
    private(set) var file: SpooledFile.Reader?
    /// Whether a partial response (206) is the rest of a body that an earlier task had received in part.
    var isContinued = false
    var spool: BodySpool?
    var deadlines: TransferDeadlines
    var timer: (any OperationTimer)?
    /// The time at which the timer fires, or the largest number if there is none.
    var watchedUntil = Int64.max
    /// Whether a challenge was declined, so that Foundation reports the request as canceled.
    var isChallengeRefused = false
    /// The metrics that Foundation measured, if it supports that.
    var measured: TransferMetrics?
    private(set) var status: Int?
    private var head: ResponseHead?
    private var headerCount = 0
    private var sentCount: Int64 = 0
    private var receivedCount: Int64 = 0
    private var firstByteAt: Int64?

    init(
        _ task: URLSessionTransferTask, _ slot: SlotTable<URLSessionTransferTask>.Slot, isInBackground: Bool, now: Int64
    ) {
        self.isInBackground = isInBackground
        self.slot = slot
        request = task.request
        length = task.request.body.length
        beganAt = now
        // Foundation does not report when the connection is ready, so the first limit is the one for the first byte.
        deadlines = TransferDeadlines(
            isInBackground ? .none : task.request.options.timeouts, pauses: task.currentDemands.pauses, now: now)
    }

    func start(_ work: URLSessionWork, _ body: URLSessionTransferBody, now: Int64) {
        self.work = work
        self.body = body
        spool = nil
        length = if case .temporary(let file) = body { FileRegionStatus(path: file.url.path)?.size } else { length }
        deadlines.connected(at: now)
        // The task may have been paused while the body was written to a file.
        self.work?.start(isSuspended: isPaused)
    }

    /// Records that Foundation's task has ended and cannot be canceled.
    func foundationHasEnded() { work?.hasEnded = true }

    func stop() {
        timer?.cancel()
        spool?.stop()
        work?.stop()
        // The timer and the spool hold this transfer and its task.
        timer = nil
        spool = nil
        work = nil
        body = .none
    }

    var phase: NetworkError.Phase {
        if head != nil { return .receiving }
        guard work != nil else { return .waiting }
        return request.body.isNone || sentCount >= length ?? .max ? .awaitingResponse : .sending
    }

    /// Records the number of body bytes that Foundation has taken to send.
    func sent(_ count: Int64, now: Int64) {
        sentCount = count
        deadlines.sent(at: now, isLast: count >= length ?? .max)
    }

    func apply(_ pausedDirections: TaskMachine.PausedDirections) {
        // If a receiver holds a transfer in the background, the body stays in its file.
        isPaused = isInBackground ? pausedDirections.contains(.sending) : !pausedDirections.isEmpty
        work?.setSuspended(isPaused)
    }

    func metrics(of task: URLSessionTransferTask, now: Int64) -> TransferMetrics {
        var metrics = measured ?? TransferMetrics()
        let resumedAt = task.confined.resumedAt
        metrics.slotGranted = .nanoseconds(beganAt - resumedAt)
        metrics.firstByte = firstByteAt.map { .nanoseconds($0 - resumedAt) }
        metrics.ended = .nanoseconds(now - resumedAt)
        metrics.paused = .nanoseconds(deadlines.paused)
        metrics.bodyBytesSent = max(metrics.bodyBytesSent, task.confined.sent)
        metrics.bodyBytesReceived = max(metrics.bodyBytesReceived, receivedCount)
        metrics.headerBytesReceived = max(metrics.headerBytesReceived, Int64(headerCount))
        return metrics
    }
}

// Received events. Each method returns the error that ends the transfer, if there is one.
extension URLSessionTransfer {
    func received(_ response: URLResponse, _ task: URLSessionTransferTask, now: Int64) -> NetworkError? {
        if firstByteAt == nil { firstByteAt = now }
        _ = deadlines.received(at: now)
        guard let response = response as? HTTPURLResponse, var head = ResponseHead(response, to: request) else {
            return NetworkError(
                code: .invalidResponse, phase: .awaitingResponse, message: "The response is not valid HTTP.")
        }
        if isContinued { head = head.asWhole(length: nil) }
        headerCount += head.headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
        let limit = request.options.maximumHeaderSize
        guard headerCount <= limit else {
            return NetworkError(
                code: .headerTooLarge, phase: .awaitingResponse,
                message: "The headers of the response are larger than \(limit) bytes. "
                    + "If the server needs such headers, raise maximumHeaderSize in the request's options.")
        }
        guard head.status >= 200 else {
            guard head.status != 101 else {
                return NetworkError(
                    code: .invalidResponse, phase: .awaitingResponse,
                    message: "The server switched to a protocol that the request did not ask for.")
            }
            deadlines.receivedInformational(isSending: sentCount > 0 && phase == .sending)
            task.report(.informational(head))
            return nil
        }
        if let first = self.head {
            // Foundation reports each part of a response of this type as a response.
            let isMixed = first.headers["Content-Type"]?.lowercased().hasPrefix("multipart/x-mixed-replace") == true
            // The receiver already has the first headers, so the body must be the one that they describe.
            if isMixed || receivedCount == 0 && first.describesSameBody(as: head) { return nil }
            return NetworkError(
                code: .connectionLost, phase: .receiving,
                message: "The response began again after its headers or a part of its body had arrived. Try again.")
        }
        if let problem = head.headers.framingProblem {
            return NetworkError(
                code: .invalidResponse, phase: .awaitingResponse,
                message: "The response is not valid HTTP: \(problem).")
        }
        self.head = head
        status = head.status
        task.confined.machine.responded()
        task.report(.head(head))
        return nil
    }

    /// Handles a body that is complete in a file.
    func received(_ file: SpooledFile) -> NetworkError? {
        do throws(NetworkError) {
            let reader = try SpooledFile.Reader(file)
            self.file = reader
            receivedCount += reader.count
            return nil
        } catch {
            return error
        }
    }

    func received(_ data: Data, _ task: URLSessionTransferTask, now: Int64) -> NetworkError? {
        guard let head, !data.isEmpty else { return nil }
        _ = deadlines.received(at: now)
        receivedCount += Int64(data.count)
        if let error = expansionError(head) { return error }
        task.report(.bytes(data))
        guard task.confined.pendingBytes > URLSessionAdapter.maximumPendingBytes else { return nil }
        return NetworkError(
            code: .resourcesExhausted, phase: .receiving,
            message:
                "More than \(URLSessionAdapter.maximumPendingBytes >> 20) MiB arrived while the task was suspended or "
                + "held, because Foundation cannot pause a server. Receive the data more quickly, or use another "
                + "session.")
    }

    /// Returns an error if the body grew too much, which can be detected only if its compressed length is known.
    private func expansionError(_ head: ResponseHead) -> NetworkError? {
        guard head.isDecoded, receivedCount > 1 << 20,
            let packed = head.headers["Content-Length"].flatMap({ Int64($0) }), packed > 0
        else { return nil }
        let limit = request.options.maximumExpansion
        guard receivedCount / packed >= Int64(limit) else { return nil }
        return NetworkError(
            code: .expansionTooLarge, phase: .receiving,
            message: "The decompressed body is more than \(limit) times as large as the received data. "
                + "If you expect this ratio, raise maximumExpansion in the request's options.")
    }

    /// Returns the reason why a transfer that Foundation ended failed, or `nil` if it succeeded.
    func failure(after error: (any Error)?, _ task: URLSessionTransferTask) -> NetworkError? {
        if let error, !isChallengeRefused || (error as? URLError)?.code != .cancelled {
            var failure = NetworkError.ofSession(error, phase: phase)
            failure.status = status
            return failure
        }
        if head == nil, let response = work?.task.response,
            let error = received(response, task, now: URLSessionAdapter.now)
        {
            return error
        }
        guard let head else {
            return NetworkError(
                code: .invalidResponse, phase: .awaitingResponse, message: "The session ended without a response.")
        }
        do throws(NetworkError) { try body.check() } catch { return error }
        return head.shortfall(of: receivedCount, for: request)
    }
}

/// The body of a request in a form that Foundation sends with the right length.
package enum URLSessionTransferBody {
    case none
    case data(Data)
    case file(FileRegion)
    case temporary(SpooledFile)

    /// Chooses the form of a body, or returns `nil` if the body must be written to a file first.
    ///
    /// Foundation would send such a body in chunks, and would stop all sessions while there are no bytes to send.
    ///
    /// - Parameter onlyFiles: Whether bytes in memory must also be written to a file first.
    init?(_ body: RequestBody, onlyFiles: Bool = false) {
        switch body.source {
        case .none: self = .none
        case .data(let data) where !onlyFiles: self = .data(data)
        case .file(let region) where region.isWhole: self = .file(region)
        case .data, .file, .stream: return nil
        }
    }

    /// Checks that the file is still the original one, both before and after it is sent.
    func check() throws(NetworkError) {
        guard case .file(let region) = self else { return }
        try region.check()
    }
}

extension URLRequest {
    /// An interval that exceeds our own limits, but is not so long that Foundation on Linux crashes.
    static let longInterval: TimeInterval = 1_000_000

    /// Creates the request in Foundation's form, without its body.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - others: The headers to add unless the request has them.
    ///   - timeout: The timeout in seconds, or `nil` to use the timeout of the session.
    package init(carrying request: NetworkRequest, adding others: HeaderFields = [:], timeout: TimeInterval?) {
        self.init(url: request.url)
        httpMethod = request.method
        for field in request.headers { addValue(field.value, forHTTPHeaderField: field.name) }
        for field in others where !request.headers.contains(field.name) {
            setValue(field.value, forHTTPHeaderField: field.name)
        }
        if !request.options.decodesContent, value(forHTTPHeaderField: "Accept-Encoding") == nil {
            setValue("identity", forHTTPHeaderField: "Accept-Encoding")
        }
        // A jar above the session takes precedence.
        if request.headers.contains("Cookie") { httpShouldHandleCookies = false }
        if let timeout { timeoutInterval = timeout }
    }
}

extension HeaderFields {
    /// Creates the headers that the configuration of a session adds to each request, without those that cannot be sent.
    init(fieldsOf configuration: URLSessionConfiguration) {
        self.init()
        for (name, value) in configuration.httpAdditionalHeaders ?? [:] {
            guard let name = name as? String, let value = value as? String, let url = URL(string: "http://localhost/"),
                let checked = try? NetworkRequest(url: url, headers: [name: value]).headers
            else { continue }
            for field in checked { add(field.name, field.value) }
        }
    }
}

extension ResponseHead {
    /// Returns whether the bodies of two responses must be the same, as far as their headers say so.
    fileprivate func describesSameBody(as other: ResponseHead) -> Bool {
        let names = ["Content-Type", "Content-Length", "Content-Encoding", "Content-Range", "ETag", "Last-Modified"]
        return status == other.status && names.allSatisfy { headers[$0] == other.headers[$0] }
    }
}
