// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit

/// A receiver that records the events of a task.
final class TransferRecorder: NetworkReceiver {
    struct Record: Sendable {
        var informational: [ResponseHead] = []
        var heads: [ResponseHead] = []
        var body: [UInt8] = []
        var bodyCount = 0
        var trailers: [HeaderFields] = []
        var sent: [Int64] = []
        var metrics: [TransferMetrics] = []
        var ends: [NetworkError?] = []
        /// The events that arrived in the wrong order.
        var disorder: [String] = []
        /// Overlapping calls, and calls after the end.
        var faults: [String] = []
        fileprivate var isBusy = false

        var status: Int? { heads.last?.status }
        var text: String { String(decoding: body, as: UTF8.self) }
        var error: NetworkError? { ends.first ?? nil }
        var code: NetworkError.Code? { error?.code }
        /// A Boolean value that indicates whether there was at most one response, exactly one end, and no fault.
        var isOrderly: Bool { heads.count <= 1 && ends.count == 1 && faults.isEmpty }
    }

    typealias Action = @Sendable (any NetworkTask, Record) -> Void

    private let record = Locked(Record())
    private let end = Gate()
    private let headCame = Gate()
    private let onHead: Action?
    private let onBytes: Action?
    private let onEnd: Action?
    private let keepsBody: Bool

    init(keepsBody: Bool = true, onHead: Action? = nil, onBytes: Action? = nil, onEnd: Action? = nil) {
        (self.keepsBody, self.onHead, self.onBytes, self.onEnd) = (keepsBody, onHead, onBytes, onEnd)
    }

    var now: Record { record.withLock { $0 } }

    /// Waits for the end and returns the recorded events.
    func ended() async -> Record {
        await end.passage()
        return now
    }

    func ended(within limit: Duration) async throws -> Record {
        try await end.passage(within: limit)
        return now
    }

    func headArrived() async { await headCame.passage() }

    private func note(
        _ name: String, mayFollow rank: Int, then action: (Record) -> Void = { _ in }, _ change: (inout Record) -> Void
    ) {
        record.withLock { record in
            if record.isBusy { record.faults.append("two calls at once") }
            if !record.ends.isEmpty { record.faults.append("a call after the end") }
            record.isBusy = true
            let stages = [record.heads.isEmpty, record.trailers.isEmpty, record.metrics.isEmpty, record.ends.isEmpty]
            let reached = (stages.lastIndex(of: false) ?? -1) + 2
            if reached > rank { record.disorder.append("\(name) after \(reached)") }
            change(&record)
        }
        action(now)
        record.withLock { $0.isBusy = false }
    }

    func task(_ task: any NetworkTask, didReceiveInformational head: ResponseHead) {
        note("informational", mayFollow: 1) { $0.informational.append(head) }
    }

    func task(_ task: any NetworkTask, didReceive head: ResponseHead) {
        note("head", mayFollow: 1, then: { onHead?(task, $0) }) { $0.heads.append(head) }
        headCame.open()
    }

    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {
        note("bytes", mayFollow: 2, then: { onBytes?(task, $0) }) { record in
            record.bodyCount += bytes.count
            if keepsBody { record.body.append(contentsOf: bytes) }
            if record.heads.isEmpty { record.disorder.append("bytes before the head") }
        }
    }

    func task(_ task: any NetworkTask, didReceiveTrailers fields: HeaderFields) {
        note("trailers", mayFollow: 2) { $0.trailers.append(fields) }
    }

    func task(_ task: any NetworkTask, didSend count: Int64, of total: Int64?) {
        note("progress", mayFollow: 3) { record in
            if count <= record.sent.last ?? 0 { record.disorder.append("progress ran backwards") }
            record.sent.append(count)
        }
    }

    func task(_ task: any NetworkTask, didCollect metrics: TransferMetrics) {
        note("metrics", mayFollow: 3) { $0.metrics.append(metrics) }
    }

    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        note("end", mayFollow: 4, then: { onEnd?(task, $0) }) { $0.ends.append(error) }
        headCame.open()
        end.open()
    }
}

extension NetworkSession {
    /// Sends a request and waits for its end.
    func run(
        _ url: URL, _ method: String = "GET", headers: HeaderFields = [:], body: RequestBody = .none,
        options: TransferOptions = .standard
    ) async throws -> TransferRecorder.Record {
        let recorder = TransferRecorder()
        let request = try NetworkRequest(method, url: url, headers: headers, body: body, options: options)
        makeTask(with: request, receiver: recorder).resume()
        return await recorder.ended()
    }
}
