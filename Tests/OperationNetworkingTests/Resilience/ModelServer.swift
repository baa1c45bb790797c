// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

/// A model of a server and the network.
///
/// A request arrives when it is sent, and the test decides when its response comes.
///
/// A request that is sent after the end of its operation is recorded as a fault.
final class ModelServer: NetworkSession {
    /// The result of a request.
    enum Answer {
        case status(Int)
        case failure(NetworkError.Code)
    }

    private struct Transfer {
        enum Phase { case made, running }

        let operation: Int
        let token: String
        let url: URL
        var phase = Phase.made
        var isSuspended = true
        let receiver: any NetworkReceiver
    }

    private struct State {
        var transfers: [Int: Transfer] = [:]
        var last = 0
        var sends = 0
        /// The operations that have ended.
        var closed: Set<Int> = []
        var faults: [String] = []
    }

    private let state = Locked(State())

    var faults: [String] { state.withLock { $0.faults } }
    /// The number of requests that were sent.
    var sendCount: Int { state.withLock { $0.sends } }
    /// The number of tasks that have not ended.
    var openCount: Int { state.withLock { $0.transfers.count } }
    /// The requests that can get a response now, in order.
    var answerable: [Int] {
        state.withLock { state in
            state.transfers.filter { $0.value.phase == .running && !$0.value.isSuspended }.keys.sorted()
        }
    }

    /// Whether a request of the operation is in flight.
    func isInFlight(_ operation: Int) -> Bool {
        state.withLock { $0.transfers.values.contains { $0.operation == operation && $0.phase == .running } }
    }

    /// The token of a request.
    func token(of transfer: Int) -> String? { state.withLock { $0.transfers[transfer]?.token } }

    /// From now on, a request of this operation is a fault.
    func close(_ operation: Int) { _ = state.withLock { $0.closed.insert(operation) } }

    func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        let number = state.withLock { state in
            state.last += 1
            state.transfers[state.last] = Transfer(
                operation: Int(request.headers["X-Operation"] ?? "") ?? -1,
                token: request.headers["Authorization"] ?? "", url: request.url, receiver: receiver)
            return state.last
        }
        return ModelTask(number, self)
    }

    func answer(_ number: Int, _ answer: Answer) {
        guard let transfer = state.withLock({ $0.transfers.removeValue(forKey: number) }) else { return }
        let task = ModelTask(number, self)
        switch answer {
        case .status(let status):
            transfer.receiver.task(task, didReceive: ResponseHead(url: transfer.url, status: status, headers: [:]))
            [UInt8]("ok".utf8).withUnsafeBytes { transfer.receiver.task(task, didReceive: $0) }
            transfer.receiver.task(task, didEndWith: nil)
        case .failure(let code):
            transfer.receiver.task(
                task, didEndWith: NetworkError(code: code, phase: .awaitingResponse, message: "The model says so."))
        }
    }

    fileprivate func resume(_ number: Int) {
        state.withLock { state in
            guard var transfer = state.transfers[number] else { return }
            transfer.isSuspended = false
            if transfer.phase == .made {
                transfer.phase = .running
                state.sends += 1
                if state.closed.contains(transfer.operation) {
                    state.faults.append("\(transfer.operation) sent a request after its end")
                }
            }
            state.transfers[number] = transfer
        }
    }

    fileprivate func suspend(_ number: Int) { state.withLock { $0.transfers[number]?.isSuspended = true } }

    fileprivate func cancel(_ number: Int, _ task: ModelTask) {
        let transfer = state.withLock { $0.transfers.removeValue(forKey: number) }
        transfer?.receiver.task(
            task, didEndWith: NetworkError(code: .cancelled, phase: .receiving, message: "The task was canceled."))
    }
}

private final class ModelTask: IdleTask {
    private let number: Int
    private let server: ModelServer

    init(_ number: Int, _ server: ModelServer) {
        (self.number, self.server) = (number, server)
    }

    func resume() { server.resume(number) }
    func suspend() { server.suspend(number) }
    func cancel() { server.cancel(number, self) }
}
