// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit

/// A receiver that records its calls and detects overlapping calls and calls after the end.
final class ExchangeProbe: NetworkReceiver {
    struct Seen: Sendable {
        var heads: [ResponseHead] = []
        var body = Data()
        var sent: [Int64] = []
        var metrics = 0
        var ends: [NetworkError?] = []
        var faults: [String] = []
        var isBusy = false
    }

    private let state = Locked(Seen())
    private let end = Gate()
    private let headCame = Gate()
    private let whenHead: @Sendable (any NetworkTask) -> Void
    private let whenBytes: @Sendable (any NetworkTask, Int) -> Void

    init(
        whenHead: @escaping @Sendable (any NetworkTask) -> Void = { _ in },
        whenBytes: @escaping @Sendable (any NetworkTask, Int) -> Void = { _, _ in }
    ) {
        self.whenHead = whenHead
        self.whenBytes = whenBytes
    }

    var seen: Seen { state.withLock { $0 } }

    /// Waits for the end and returns the recorded calls.
    func ended() async -> Seen {
        await end.passage()
        return seen
    }

    func ended(within limit: Duration) async throws -> Seen {
        try await end.passage(within: limit)
        return seen
    }

    func headArrived() async { await headCame.passage() }

    private func note(_ body: (inout Seen) -> Void, then: () -> Void = {}) {
        state.withLock { seen in
            if seen.isBusy { seen.faults.append("two calls at once") }
            if !seen.ends.isEmpty { seen.faults.append("a call after the end") }
            seen.isBusy = true
            body(&seen)
        }
        then()
        state.withLock { $0.isBusy = false }
    }

    func task(_ task: any NetworkTask, didReceive head: ResponseHead) {
        note {
            $0.heads.append(head)
        } then: {
            whenHead(task)
        }
        headCame.open()
    }

    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {
        note {
            $0.body.append(contentsOf: bytes)
        } then: {
            whenBytes(task, bytes.count)
        }
    }

    func task(_ task: any NetworkTask, didSend count: Int64, of total: Int64?) {
        note { $0.sent.append(count) }
    }

    func task(_ task: any NetworkTask, didCollect metrics: TransferMetrics) {
        note { $0.metrics += 1 }
    }

    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        note { $0.ends.append(error) }
        headCame.open()
        end.open()
    }
}

extension ExchangeProbe.Seen {
    var text: String { String(decoding: body, as: UTF8.self) }
    var status: Int? { heads.first?.status }
    var error: NetworkError? { ends.first ?? nil }
    /// A Boolean value that indicates whether there was at most one response, exactly one end, and no fault.
    var isOrderly: Bool { heads.count <= 1 && ends.count == 1 && faults.isEmpty }
}

extension ExchangeSession {
    /// Creates a session with a changed configuration.
    static func over(
        _ transport: any NetworkSession, _ change: (inout ExchangeConfiguration) -> Void
    ) -> ExchangeSession {
        ExchangeSession(over: transport, configuration: with(ExchangeConfiguration(), change))
    }

    /// Starts a task and suspends it while the cache is busy.
    func startSuspended(_ task: any NetworkTask) {
        let goOn = DispatchSemaphore(value: 0)
        configuration.cache?.perform { _, _ in goOn.wait() }
        task.resume()
        task.suspend()
        goOn.signal()
    }

    /// Sends a request and waits for its end.
    func fetch(
        _ method: String, _ url: URL, headers: HeaderFields = [:], body: RequestBody = .none
    ) async throws -> ExchangeProbe.Seen {
        let probe = ExchangeProbe()
        makeTask(with: try NetworkRequest(method, url: url, headers: headers, body: body), receiver: probe).resume()
        return await probe.ended()
    }

    /// Sends a GET request and waits for its end.
    func fetch(_ url: URL, headers: HeaderFields = [:]) async throws -> ExchangeProbe.Seen {
        try await fetch("GET", url, headers: headers)
    }
}
