// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
@_spi(Subclassing) import OperationCore
import OperationTestKit

/// The error of the operations in these tests.
enum Flaw: Error, Equatable {
    case first
    case second
    case converted(String)
}

/// An operation without its own work: a test finishes it and observes its hooks.
final class HandDriven: AsyncOperation<Int, Flaw>, @unchecked Sendable {
    struct Hooks: Sendable {
        var main: @Sendable (HandDriven) -> Void = { _ in }
        var cancel: @Sendable (HandDriven) -> Void = { _ in }
        var suspend: @Sendable (HandDriven) -> Void = { _ in }
        var resume: @Sendable (HandDriven) -> Void = { _ in }
    }

    /// The hooks that were called: main, cancel, suspend, resume.
    let calls = EventRecorder<String>()
    private let hooks: Hooks
    private let windsDown: Bool
    private let isBrief: Bool

    init(_ name: String? = nil, windsDown: Bool = false, isBrief: Bool = false, hooks: Hooks = Hooks()) {
        self.hooks = hooks
        self.isBrief = isBrief
        self.windsDown = windsDown
        super.init()
        self.name = name
    }

    /// Creates an operation and starts it.
    static func started() -> HandDriven {
        let operation = HandDriven()
        operation.start()
        return operation
    }

    /// Finishes the operation when its body has begun.
    func finishOnceBegun(withResult result: Int) async {
        _ = await calls.events(atLeast: 1)
        finish(withResult: result)
    }

    override var windsDownAfterCancellation: Bool { windsDown }
    override var isBodyBrief: Bool { isBrief }

    override func main() {
        calls.record("main")
        hooks.main(self)
    }

    override func didCancel(because cause: CancellationCause) {
        calls.record("cancel \(cause.code)")
        hooks.cancel(self)
    }

    override func didSuspend() {
        calls.record("suspend")
        hooks.suspend(self)
    }

    override func didResume() {
        calls.record("resume")
        hooks.resume(self)
    }
}

/// A synchronous operation whose body is supplied by a test.
final class SyncProbe: SyncOperation<Int, Flaw>, @unchecked Sendable {
    let calls = EventRecorder<String>()
    private let body: @Sendable (SyncProbe) -> Void

    init(_ name: String? = nil, _ body: @escaping @Sendable (SyncProbe) -> Void) {
        self.body = body
        super.init()
        self.name = name
    }

    override func main() {
        calls.record("main")
        body(self)
    }

    override func didCancel(because cause: CancellationCause) { calls.record("cancel \(cause.code)") }

    /// Creates an operation that records its name and returns 0.
    static func recording(_ name: String, in order: EventRecorder<String>) -> SyncProbe {
        SyncProbe(name) { operation in
            order.record(name)
            operation.finish(withResult: 0)
        }
    }
}

/// Everything that an operation reports about its state.
struct Look: Equatable, CustomStringConvertible {
    var state: OperationState
    var text: String
    var isWorking: Bool
    var isOver: Bool
    var flags: Set<String>

    init(_ operation: ManagedOperation) {
        state = operation.state
        text = ["succeeded", "failed"].contains(operation.stateDescription) ? "finished" : operation.stateDescription
        isWorking = operation.isWorkingOrInProcess
        isOver = operation.isFinishedOrCancelled
        flags = []
        if operation.isReady { flags.insert("ready") }
        if operation.isExecuting { flags.insert("executing") }
        if operation.isCancelled { flags.insert("cancelled") }
        if operation.isFinished { flags.insert("finished") }
    }

    init(_ state: OperationState, _ text: String, working: Bool, _ flags: Set<String>) {
        self.state = state
        self.text = text
        isWorking = working
        isOver = !working
        self.flags = flags
    }

    var description: String { "\(state) '\(text)' working \(isWorking) over \(isOver) \(flags.sorted())" }

    static let waiting = Look(.notStarted, "not started", working: true, ["ready"])
    static let blocked = Look(.notStarted, "not started", working: true, [])
    static let executing = Look(.executing, "executing", working: true, ["ready", "executing"])
    static let suspended = Look(.suspended, "suspended", working: true, ["ready", "executing"])
    static let finished = Look(.finished, "finished", working: false, ["ready", "finished"])
    static let cancelled = Look(.cancelled, "cancelled", working: false, ["ready", "cancelled", "finished"])
    /// Canceled before it was started.
    static let cancelledEarly = Look(.cancelled, "cancelled", working: false, ["ready", "cancelled"])
    /// Canceled while its body is still running.
    static let windingDown = Look(.cancelled, "cancelled", working: false, ["ready", "cancelled", "executing"])
}
