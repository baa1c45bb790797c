// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Hands the events of one request of an exchange on, with the number by which the exchange knows it.
final class HopReceiver: NetworkReceiver {
    private let exchange: ExchangeTask
    private let step: Int

    init(_ exchange: ExchangeTask, step: Int) {
        self.exchange = exchange
        self.step = step
    }

    func task(_ task: any NetworkTask, didReceive head: ResponseHead) {
        exchange.received(head, step: step)
    }

    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {
        exchange.received(bytes, by: task, step: step)
    }

    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        exchange.ended(error, step: step)
    }

    func task(_ task: any NetworkTask, didReceiveInformational head: ResponseHead) {
        exchange.handOn(step: step) { $0.task($1, didReceiveInformational: head) }
    }

    func task(_ task: any NetworkTask, didReceiveTrailers fields: HeaderFields) {
        exchange.handOn(step: step) { $0.task($1, didReceiveTrailers: fields) }
    }

    func task(_ task: any NetworkTask, didSend count: Int64, of total: Int64?) {
        exchange.sent(count, of: total, step: step)
    }

    func task(_ task: any NetworkTask, didCollect metrics: TransferMetrics) {
        exchange.collected(metrics, step: step)
    }

    func taskMayLeave(_ task: any NetworkTask) -> Bool { exchange.mayLeave(step: step) }
}
