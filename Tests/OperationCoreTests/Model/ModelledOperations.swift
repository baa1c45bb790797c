// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit

struct ModelError: Error {}

/// An operation of these tests, which records the runs of its body.
protocol BodyCounting: TypedOperation<Int, ModelError> {
    var body: BodyLog { get }
}

final class BodyLog: Sendable {
    private let count = Locked(0)
    let gate = Gate()
    /// Opens when the operation has ended and released its dependents.
    let completion = Gate()

    var runs: Int { count.withLock { $0 } }

    func begin() {
        count.withLock { $0 += 1 }
        gate.open()
    }

    /// Also opens the gate when the operation ends without its body.
    func attach(to operation: ManagedOperation) {
        operation.whenEnded { [gate] in gate.open() }
        operation.completionBlock = { [completion] in completion.open() }
    }
}

final class AtOnceOperation: AsyncOperation<Int, ModelError>, BodyCounting, @unchecked Sendable {
    let body = BodyLog()
    override func main() { body.begin() }
}

final class WindingDownOperation: AsyncOperation<Int, ModelError>, BodyCounting, @unchecked Sendable {
    let body = BodyLog()
    override var windsDownAfterCancellation: Bool { true }
    override func main() { body.begin() }
}

final class ImmediateOperation: SyncOperation<Int, ModelError>, BodyCounting, @unchecked Sendable {
    let body = BodyLog()
    let value: Int
    init(value: Int) { self.value = value }

    override func main() {
        body.begin()
        finish(withResult: value)
    }
}

/// The real operations of one schedule, which get the same commands as the model.
final class ModelledOperations: Sendable {
    let queue = DispatchQueue(label: "model")
    let log = EventRecorder<(index: Int, ending: ModelEnding)>()
    private let slots: [Slot]

    /// Holds an operation until it is dropped, and knows afterwards whether it is still alive.
    private final class Slot: Sendable {
        let isStarted = Locked(false)
        private let held: Locked<(any BodyCounting)?>
        // Sendable: written once, in init; loading a weak reference is atomic.
        private nonisolated(unsafe) weak var reference: (any BodyCounting)?

        init(_ operation: any BodyCounting) {
            held = Locked(operation)
            reference = operation
        }

        var operation: (any BodyCounting)? { held.withLock { $0 } }
        var survivor: (any BodyCounting)? { reference }

        func drop() {
            let dropped = held.withLock { held in
                defer { held = nil }
                return held
            }
            withExtendedLifetime(dropped) {}
        }
    }

    init(kinds: [ModelKind], census: LiveObjects) {
        let queue = queue
        slots = kinds.enumerated().map { index, kind in
            let operation: any BodyCounting =
                switch kind {
                case .atOnce: AtOnceOperation()
                case .windsDown: WindingDownOperation()
                case .sync: ImmediateOperation(value: index)
                }
            operation.name = "model \(index)"
            operation.callbackQueue = queue
            operation.body.attach(to: operation)
            return Slot(census.track(operation))
        }
    }

    func apply(_ command: ModelCommand) {
        let involved = command.operations.compactMap { slots[$0].operation }
        guard involved.count == command.operations.count, let operation = involved.first else { return }
        let log = log
        switch command {
        case .start(let index):
            slots[index].isStarted.withLock { $0 = true }
            operation.start()
        case .finish(_, let value): operation.finish(withResult: value)
        case .fail: operation.finish(withError: ModelError())
        case .cancel: operation.cancel()
        case .depend: operation.addDependency(involved[1])
        case .release: operation.removeDependency(involved[1])
        case .setHandlers(let index):
            operation.successHandler = { log.record((index, .success($0))) }
            operation.failureHandler = { _ in log.record((index, .failure)) }
            operation.cancellationHandler = { _ in log.record((index, .cancelled)) }
        case .observe(let index): operation.observe { log.record((index, ending(of: $0))) }
        case .drop(let index): slots[index].drop()
        }
    }

    /// Waits for the bodies that begin on other threads, and for the handlers.
    @available(*, noasync)
    func settle() {
        var isSettled = false
        while !isSettled {
            isSettled = true
            for operation in slots.filter({ $0.isStarted.withLock { $0 } }).compactMap(\.survivor) {
                // The operation is ready and started, so its body begins or has begun.
                if operation.isReady, !operation.isFinished {
                    if operation is ImmediateOperation { isSettled = false }
                    operation is ImmediateOperation ? operation.body.completion.wait() : operation.body.gate.wait()
                }
                // The operation has ended. Its dependents may have begun meanwhile, on this thread or another.
                if operation.isFinished, !operation.body.completion.isOpen {
                    operation.body.completion.wait()
                    isSettled = false
                }
            }
        }
        queue.sync {}
    }

    var views: [ModelView?] {
        let events = log.events
        return slots.enumerated().map { index, slot in
            guard let operation = slot.operation else { return nil }
            return ModelView(
                state: operation.state, isFinished: operation.isFinished, ending: operation.outcome.map(ending(of:)),
                bodyRuns: operation.body.runs, told: events.filter { $0.index == index }.map(\.ending))
        }
    }
}

private func ending(of outcome: OperationOutcome<Int, ModelError>) -> ModelEnding {
    switch outcome {
    case .success(let value): .success(value)
    case .failure: .failure
    case .cancelled: .cancelled
    }
}
