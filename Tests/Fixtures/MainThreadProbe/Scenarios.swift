// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// An operation whose body runs on its own thread.
private final class Elsewhere: AsyncOperation<Int, any Error>, @unchecked Sendable {
    private let body: @Sendable () throws -> Int
    init(_ body: @escaping @Sendable () throws -> Int) { self.body = body }

    override func main() {
        Thread { [self] in
            do { finish(withResult: try body()) } catch { finish(withError: error) }
        }.start()
    }
}

private final class Count: Sendable {
    private let number = Locked(0)
    var value: Int { number.withLock { $0 } }
    func increase() { number.withLock { $0 += 1 } }
}

@MainActor
enum Scenarios {
    static func mainIsTheCallbackQueue() throws {
        let calls = Count()
        let sync = ClosureOperation { 1 }
        sync.successHandler = { _ in calls.increase() }
        expect(try sync.startAndWait() == 1, "a synchronous operation")
        let elsewhere = Elsewhere { 2 }
        elsewhere.successHandler = { _ in calls.increase() }
        expect(try elsewhere.startAndWait() == 2, "an asynchronous operation")
        elsewhere.waitUntilFinished()
        let task = TaskOperation { 3 }
        task.successHandler = { _ in calls.increase() }
        expect(try task.startAndWait() == 3, "a task")
        // The main thread does not run the main queue, so the handlers wait.
        expect(calls.value == 0, "no handler while main is busy")
    }

    static func mainQueueOperationOnMain() throws {
        let operation = MainQueueOperation { Thread.isMainThread }
        expect(try operation.startAndWait(), "it runs immediately")
        operation.waitUntilFinished()
        let started = MainQueueOperation { Thread.isMainThread }
        started.start()
        expect(started.isFinished, "it has ended when start returned")
    }

    static func mainWaitsBeforeTheStart() throws {
        let marker = MainQueueOperation {}, operation = MainQueueOperation { Thread.isMainThread }
        Thread {
            // The marker runs only when the main thread waits.
            _ = try? marker.startAndWait()
            operation.start()
        }.start()
        operation.waitUntilFinished()
        expect(operation.outcome?.result == true, "it ran on main")
    }

    static func mainWaitsAfterTheStart() throws {
        let started = DispatchSemaphore(value: 0), operation = MainQueueOperation { Thread.isMainThread }
        Thread {
            operation.start()
            started.signal()
        }.start()
        started.wait()
        expect(operation.state == .executing, "it waits for main")
        operation.waitUntilFinished()
        expect(operation.outcome?.result == true, "it ran on main")
    }

    static func bodyWaitsForMain() throws {
        let outer = Elsewhere {
            let inner = MainQueueOperation { Thread.isMainThread }
            return try inner.startAndWait() ? 5 : 0
        }
        expect(try outer.startAndWait() == 5, "the inner one ran on main, which waited for the outer one")
        let queued = Elsewhere {
            let inner = MainQueueOperation { 6 }
            OperationQueue().addOperation(inner)
            inner.waitUntilFinished()
            return inner.outcome?.result ?? 0
        }
        OperationQueue().addOperation(queued)
        queued.waitUntilFinished()
        expect(queued.outcome?.result == 6, "in queues, too")
    }

    /// The main thread waits, runs a closure meanwhile, and waits again inside that closure.
    static func mainWaitsInsideItsOwnClosure() throws {
        let outer = Elsewhere {
            let first = MainQueueOperation { () throws -> Int in
                let deeper = Elsewhere {
                    let second = MainQueueOperation { Thread.isMainThread }
                    return try second.startAndWait() ? 7 : 0
                }
                return try deeper.startAndWait()
            }
            return try first.startAndWait()
        }
        expect(try outer.startAndWait() == 7, "waits one inside the other")
    }

    static func manyFromSeveralThreads() throws {
        let count = Count()
        let threads = (0..<4).map { _ in
            Elsewhere {
                for _ in 0..<500 {
                    let operation = MainQueueOperation { if Thread.isMainThread { count.increase() } }
                    try operation.startAndWait()
                }
                return 0
            }
        }
        for thread in threads { thread.start() }
        for thread in threads { thread.waitUntilFinished() }
        expect(count.value == 2_000, "all of them ran on main")
    }

    static func dependencyOnMain() throws {
        let upstream = MainQueueOperation { 1 }, downstream = ClosureOperation { 2 }
        try downstream.depend(on: upstream, otherwise: .cancel)
        Thread { upstream.start() }.start()
        expect(try downstream.startAndWait() == 2, "its dependency ran on main, which waited")
    }

    static func cancelledWhileMainIsBusy() throws {
        let started = DispatchSemaphore(value: 0), runs = Count()
        let operation = MainQueueOperation { runs.increase() }
        Thread {
            operation.start()
            operation.cancel()
            started.signal()
        }.start()
        started.wait()
        operation.waitUntilFinished()
        try? MainQueueOperation {}.startAndWait()
        expect(operation.isCancelled && runs.value == 0, "it did not run")
    }

    static func dispatchMainServesHandlers() throws {
        let told = Locked<[String]>([])
        let note: @Sendable (String) -> Void = { what in
            let count = told.withLock { told in
                told.append(what)
                return told.count
            }
            if count == 4 { finish() }
        }
        let operation = Elsewhere { 1 }
        operation.successHandler = { _ in note("handler") }
        operation.onMainActor(success: { _ in note("main actor") })
        operation.startAndKeepAlive()
        Thread {
            let onMain = MainQueueOperation { note("closure") }
            _ = try? onMain.startAndWait()
            let again = MainQueueOperation { () throws -> Int in
                // This closure is already on the main queue, so the operation runs immediately.
                try MainQueueOperation { 1 }.startAndWait()
            }
            expect((try? again.startAndWait()) == 1, "one inside the other")
            note("nested")
        }.start()
        dispatchMain()
    }
}

func finish() -> Never {
    print("OK")
    exit(0)
}

func expect(_ isTrue: Bool, _ what: String) {
    guard !isTrue else { return }
    print("FAILED: \(what)")
    exit(1)
}
