// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.
import OperationNetworking
import OperationTestKit

/// Records the events of a task, and checks that the session follows the contract.
final class RecordingReceiver: NetworkReceiver {
    enum Event: Sendable {
        case informational(ResponseHead)
        case head(ResponseHead)
        case bytes(Int)
        case trailers(HeaderFields)
        case sent(Int64, Int64?)
        case metrics(TransferMetrics)
        case end(NetworkError?)
    }

    struct Record: Sendable {
        var informational: [ResponseHead] = []
        var heads: [ResponseHead] = []
        var body: [UInt8] = []
        var bodyCount = 0
        /// Whether all bytes of the body match the test pattern.
        var isPattern = true
        var trailers: HeaderFields?
        var metrics: TransferMetrics?
        /// The numbers of sent bytes that the session reported.
        var progress: [Int64] = []
        var error: NetworkError?
        var ends = 0
        /// The violations of the contract by the session.
        var faults: [String] = []
        /// Events after the metrics, and reports of progress that do not grow, which some sessions may deliver.
        ///
        /// `isInOrder` forbids these events, and `isOrderly` allows them.
        var disorder: [String] = []

        var head: ResponseHead? { heads.last }
        var sent: Int64 { progress.last ?? 0 }
        var code: NetworkError.Code? { error?.code }
        var status: Int? { head?.status }
        var text: String { String(decoding: body, as: UTF8.self) }
        var isSuccess: Bool { ends == 1 && error == nil }
        /// A Boolean value that indicates whether there was exactly one end, and no violation of the contract.
        var isOrderly: Bool { ends == 1 && faults.isEmpty }
        var isInOrder: Bool { faults.isEmpty && disorder.isEmpty }
    }

    private struct Waiter {
        let number: Int
        let isReached: @Sendable (Record) -> Bool
        let pass: @Sendable () -> Void
    }

    private struct State {
        var record = Record()
        var isInside = false
        var waiting: [Waiter] = []
        var lastWaiter = 0
    }

    private static let keptBytes = 1 << 20

    private let state = Locked(State())
    private let react: @Sendable (Event, any NetworkTask) -> Void

    /// Creates a receiver that calls `react` after each event, on the session's thread.
    init(_ react: @escaping @Sendable (Event, any NetworkTask) -> Void = { _, _ in }) {
        self.react = react
    }

    var record: Record { state.withLock { $0.record } }

    /// Waits until the record satisfies the condition, the task has ended, or the test is canceled.
    func record(where isReached: @escaping @Sendable (Record) -> Bool) async -> Record {
        let number = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isThere = state.withLock { state in
                    let isOver = state.record.ends > 0 || isReached(state.record)
                    if Task.isCancelled || isOver && !state.isInside { return true }
                    let waiter = Waiter(number: number, isReached: isReached, pass: { continuation.resume() })
                    state.waiting.append(waiter)
                    return false
                }
                if isThere { continuation.resume() }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                state.waiting.firstIndex { $0.number == number }.map { state.waiting.remove(at: $0) }
            }
            waiter?.pass()
        }
        return record
    }

    /// Waits for the end of the task.
    func end() async -> Record {
        await record { _ in false }
    }

    func task(_ task: any NetworkTask, didReceiveInformational head: ResponseHead) {
        note(.informational(head), task) { record in
            if record.head != nil { record.faults.append("an informational head after the head") }
            if !(100...199).contains(head.status) { record.faults.append("status \(head.status) as informational") }
            record.informational.append(head)
        }
    }

    func task(_ task: any NetworkTask, didReceive head: ResponseHead) {
        note(.head(head), task) { record in
            if record.head != nil { record.faults.append("two heads") }
            if head.status < 200 { record.faults.append("status \(head.status) as head") }
            record.heads.append(head)
        }
    }

    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {
        note(.bytes(bytes.count), task) { record in
            if record.head == nil { record.faults.append("bytes before the head") }
            if record.trailers != nil { record.faults.append("bytes after the trailers") }
            if bytes.isEmpty { record.faults.append("a delivery of no bytes") }
            if record.isPattern { record.isPattern = TestPattern.matches(bytes, from: record.bodyCount) }
            record.body += bytes.prefix(max(Self.keptBytes - record.body.count, 0))
            record.bodyCount += bytes.count
        }
    }

    func task(_ task: any NetworkTask, didReceiveTrailers fields: HeaderFields) {
        note(.trailers(fields), task) { record in
            if record.head == nil { record.faults.append("trailers before the head") }
            if record.trailers != nil { record.faults.append("trailers twice") }
            record.trailers = fields
        }
    }

    func task(_ task: any NetworkTask, didSend count: Int64, of total: Int64?) {
        note(.sent(count, total), task) { record in
            if count < record.sent { record.faults.append("progress went from \(record.sent) back to \(count)") }
            if let total, count > total { record.faults.append("progress of \(count) of \(total)") }
            if count <= record.sent { record.disorder.append("progress of \(count) after \(record.sent)") }
            record.progress.append(count)
        }
    }

    func task(_ task: any NetworkTask, didCollect metrics: TransferMetrics) {
        note(.metrics(metrics), task) { record in
            if record.metrics != nil { record.faults.append("metrics twice") }
            record.metrics = metrics
        }
    }

    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        note(.end(error), task) { record in
            record.ends += 1
            record.error = error
            if error == nil, record.head == nil { record.faults.append("success without a head") }
        }
    }

    private func note(_ event: Event, _ task: any NetworkTask, _ change: (inout Record) -> Void) {
        state.withLock { state in
            if state.isInside { state.record.faults.append("two calls at once") }
            state.isInside = true
            if state.record.ends > 0 { state.record.faults.append("\(event) after the end") }
            let isEnd = if case .end = event { true } else { false }
            if !isEnd, state.record.metrics != nil { state.record.disorder.append("\(event) after the metrics") }
            change(&state.record)
        }
        react(event, task)
        // A waiter continues only after `react` has returned.
        let passing = state.withLock { state in
            state.isInside = false
            let (record, all) = (state.record, state.waiting)
            state.waiting = all.filter { record.ends == 0 && !$0.isReached(record) }
            return all.filter { record.ends > 0 || $0.isReached(record) }
        }
        for waiter in passing { waiter.pass() }
    }
}
