// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// A subclass that declares its own members with these names.
private final class Renamed: SyncOperation<Int, Flaw>, @unchecked Sendable {
    let anyError = "none"
    func ended() -> String { "at five" }
    override func main() { finish(withResult: 1) }
}

@Suite("Waiting for the end, and the type-erased error", .timeLimit(.minutes(3)))
struct EndedTests {
    @Test func `ended() returns when the operation ends, not when its outcome is decided`() async {
        let operation = HandDriven(windsDown: true), log = EventRecorder<String>()
        let waiting = Task {
            await operation.ended()
            log.record("ended \(operation.isFinished)")
        }
        while operation.endActionCount == 0 { await Task.yield() }
        operation.start()
        operation.cancel()
        _ = await operation.finalOutcome
        log.record("decided")
        operation.finish(withResult: 1)
        await waiting.value
        #expect(log.events == ["decided", "ended true"])
    }

    @Test func `ended() waits for operations of any type in a queue`() async {
        let operations: [ManagedOperation] = [ClosureOperation { 1 }, TaskOperation { "two" }, SyncProbe { _ in }]
        let queue = OperationQueue()
        for operation in operations { queue.addOperation(operation) }
        for operation in operations { await operation.ended() }
        let finished = operations.filter(\.isFinished)
        #expect(finished.count == 3)
    }

    @Test(arguments: [true, false])
    func `canceling the task that awaits ended() does not cancel the operation`(isEarly: Bool) async {
        let operation = HandDriven(), mayWait = Gate()
        operation.start()
        let waiting = Task {
            if isEarly { await mayWait.passage() }
            await operation.ended()
        }
        if !isEarly {
            while operation.endActionCount == 0 { await Task.yield() }
        }
        waiting.cancel()
        mayWait.open()
        await waiting.value
        #expect(Look(operation) == .executing)
        await operation.finishAndEnd(withResult: 1)
        #expect(operation.outcome == .success(1))
    }

    @Test func `canceled tasks that awaited ended() leave no end actions behind`() async {
        let operation = HandDriven.started()
        for _ in 0..<100 {
            let waiting = Task { await operation.ended() }
            waiting.cancel()
            await waiting.value
        }
        #expect(operation.endActionCount <= 4)
        operation.finish(withResult: 1)
    }

    @Test func `anyError is nil unless the operation failed with an error`() {
        let failed = HandDriven(), cancelled = HandDriven(), succeeded = HandDriven()
        let operations: [ManagedOperation] = [failed, cancelled, succeeded]
        for operation in operations {
            operation.start()
            #expect(operation.anyError == nil)
        }
        failed.finish(withError: .second)
        cancelled.cancel()
        succeeded.finish(withResult: 1)
        let errors = operations.map { $0.anyError as? Flaw }
        #expect(errors == [.second, nil, nil])
    }

    @Test func `a subclass can declare its own ended() and anyError`() async {
        let operation = Renamed()
        operation.start()
        #expect(operation.ended() == "at five")
        #expect(operation.anyError == "none")
        await (operation as ManagedOperation).ended()
        #expect((operation as ManagedOperation).anyError == nil)
    }

    #if !canImport(ObjectiveC)
        @Test func `an operation removes the end actions of plain operations that are freed or removed`() {
            let operation = HandDriven()
            for _ in 0..<1_000 {
                autoreleasing {
                    let waiting = BlockOperation {}
                    waiting.addDependency(operation)
                }
            }
            #expect(operation.endActionCount <= 4)
            for _ in 0..<1_000 {
                let waiting = BlockOperation {}
                waiting.addDependency(operation)
                waiting.removeDependency(operation)
            }
            #expect(operation.endActionCount <= 8)
        }
    #endif
}
