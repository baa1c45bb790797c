// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

enum WorkError: Error, Equatable {
    case broken
    case number(Int)
}

/// A managed operation that the test ends.
final class HeldWork: AsyncOperation<Int, WorkError>, @unchecked Sendable {
    private let windsDown: Bool
    private let trace: Trace?
    private let body: (@Sendable (HeldWork) -> Void)?

    init(windsDown: Bool = false, trace: Trace? = nil, _ body: (@Sendable (HeldWork) -> Void)? = nil) {
        self.windsDown = windsDown
        self.trace = trace
        self.body = body
        super.init()
    }

    override var windsDownAfterCancellation: Bool { windsDown }

    override func main() { body?(self) }
}

/// A managed operation that ends with its body, with the result 1 unless the body sets another outcome.
final class QuickWork: SyncOperation<Int, WorkError>, @unchecked Sendable {
    private let trace: Trace?
    private let body: (@Sendable (QuickWork) -> Void)?

    init(trace: Trace? = nil, _ body: (@Sendable (QuickWork) -> Void)? = nil) {
        self.trace = trace
        self.body = body
        super.init()
    }

    override func main() {
        body?(self)
        if outcome == nil { finish(withResult: 1) }
    }
}

/// A plain Foundation operation that ends with its body.
final class ForeignQuickWork: Operation, @unchecked Sendable {
    private let trace: Trace?
    private let body: (@Sendable () -> Void)?

    init(trace: Trace? = nil, _ body: (@Sendable () -> Void)? = nil) {
        self.trace = trace
        self.body = body
        super.init()
    }

    override func main() { body?() }
}

/// A plain asynchronous Foundation operation, written in the usual way, that the test ends.
final class ForeignHeldWork: Operation, @unchecked Sendable {
    private enum Phase { case waiting, executing, finished }

    private let phase = Locked(Phase.waiting)
    private let body: (@Sendable () -> Void)?

    init(_ body: (@Sendable () -> Void)? = nil) {
        self.body = body
        super.init()
    }

    override var isAsynchronous: Bool { true }
    override var isExecuting: Bool { phase.withLock { $0 == .executing } }
    override var isFinished: Bool { phase.withLock { $0 == .finished } }

    override func start() {
        if isCancelled { return end() }
        move(to: .executing)
        body?()
    }

    func end() { move(to: .finished) }

    private func move(to new: Phase) {
        willChangeValue(forKey: "isExecuting")
        willChangeValue(forKey: "isFinished")
        phase.withLock { $0 = new }
        didChangeValue(forKey: "isFinished")
        didChangeValue(forKey: "isExecuting")
    }
}
