// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// The thread on which an operation ends also starts the next operation if its body is brief.
@Suite(.nothingStaysAlive, .timeLimit(.minutes(1)))
struct LentThreadTests {
    private let workers = ManualWorkers()
    private let order = EventRecorder<String>()

    private func made(_ name: String, isBrief: Bool = true, endsAtOnce: Bool = false) -> HandDriven {
        HandDriven(
            name, isBrief: isBrief,
            hooks: .init(main: { [order] operation in
                order.record(name)
                if endsAtOnce { operation.finish(withResult: 0) }
            }))
    }

    /// A queue with one slot, which the first operation occupies.
    ///
    /// All threads have left the queue.
    private func makeQueue(_ operations: [HandDriven]) throws -> QueueManager {
        let queue = workers.makeQueue("lent", width: 1)
        try queue.add(operations)
        workers.runAll()
        #expect(order.events == [operations[0].name] && workers.count == 0)
        return queue
    }

    @Test(arguments: [false, true])
    func `the next brief operation starts on the thread that finished the previous one`(isInGroup: Bool) throws {
        let row = (0..<3).map { made("\($0)") }
        let group = GroupOperation.map(0..<3, width: 1, on: workers.makeQueue("lent")) { row[$0] }
        let queue = isInGroup ? nil : try makeQueue(row)
        if isInGroup { group.start() }
        workers.runAll()
        for index in row.indices {
            BorrowedThread.run { row[index].finish(withResult: 0) }
            #expect(order.events == Array(["0", "1", "2"].prefix(index + 2)) && workers.count == 0)
        }
        #expect((queue?.counts.finished ?? group.outcome?.result?.count) == 3)
    }

    @Test func `the next brief operation starts before the end of the previous one is reported`() throws {
        let row = [made("first"), made("next")]
        let queue = try makeQueue(row)
        row[0].whenEnded { [order] in order.record("told") }
        BorrowedThread.run { row[0].finish(withResult: 0) }
        #expect(order.events == ["first", "next", "told"])
        row[1].finish(withResult: 0)
        #expect(queue.counts.finished == 2)
    }

    @Test func `finishing on a thread that is not lent starts the next operation on a queue thread`() throws {
        let row = [made("first"), made("next")]
        let queue = try makeQueue(row)
        row[0].finish(withResult: 0)
        #expect(row[1].state == .notStarted && workers.count == 1)
        workers.runAll()
        #expect(row[1].state == .executing)
        row[1].finish(withResult: 0)
        #expect(queue.counts.finished == 2)
    }

    @Test func `operations that may take long, and those after them, start on a queue thread`() throws {
        let row = [made("first"), made("long", isBrief: false), made("last")]
        let queue = try makeQueue(row)
        BorrowedThread.run { row[0].finish(withResult: 0) }
        #expect(order.events == ["first"] && workers.count == 1)
        workers.runAll()
        #expect(order.events == ["first", "long"])
        BorrowedThread.run { row[1].finish(withResult: 0) }
        #expect(order.events == ["first", "long", "last"])
        row[2].finish(withResult: 0)
        #expect(queue.counts.finished == 3)
    }

    @Test func `operations with user code before the body start on a queue thread`() throws {
        let source = ClosureOperation { 1 }
        source.start()
        let fed = made("fed"), owned = made("owned"), timed = made("timed"), held = made("held")
        try fed.receive(from: source, otherwise: .cancel) { _, _ in }
        owned.owner = .named("lent")
        timed.timeout = .seconds(60)
        held.categories = [OperationCategory("lent")]
        for next in [fed, owned, timed, held] {
            let first = made("first"), queue = workers.makeQueue("lent", width: 1)
            try queue.add([first, next])
            workers.runAll()
            BorrowedThread.run { first.finish(withResult: 0) }
            #expect(next.state == .notStarted, "\(next.name ?? "")")
            next.cancel()
            workers.runAll()
            #expect(queue.engine.operations.isEmpty)
        }
    }

    @Test func `a child that a body adds starts on a queue thread`() throws {
        let child = made("child"), group = GroupOperation(policy: .failFast, on: workers.makeQueue("lent"))
        let first = made("first")
        try group.add(first)
        group.start()
        workers.runAll()
        let body = ClosureOperation { try? group.add(child) }
        BorrowedThread.run { body.start() }
        #expect(child.state == .notStarted && workers.count == 1)
        workers.runAll()
        for operation in [first, child] { operation.finish(withResult: 0) }
        #expect(group.isFinished && !group.isCancelled)
    }

    @Test(arguments: [false, true])
    func `a closure that makes a child or combines the results starts no operation on its thread`(makes: Bool) throws {
        let row = [made("first"), made("next")], child = made("child")
        let queue = try makeQueue(row)
        @Sendable func endFirst() {
            row[0].finish(withResult: 0)
            order.record("closure")
        }
        let children = workers.makeQueue("children")
        let group: Operation =
            makes
            ? GroupOperation.map(0..<2, width: 1, on: children) { index in
                if index == 1 { endFirst() }
                return index == 0 ? child : made("last", endsAtOnce: true)
            } : GroupOperation.all([child], on: children) { (_: [Int]) in endFirst() }
        group.start()
        workers.runAll()
        BorrowedThread.run { child.finish(withResult: 0) }
        #expect(order.events.prefix(3) == ["first", "child", "closure"])
        workers.runAll()
        row[1].finish(withResult: 0)
        workers.runAll()
        #expect(queue.counts.finished == 2 && group.isFinished)
    }

    @Test func `20,000 operations that finish immediately do not overflow the stack`() throws {
        let first = made("first")
        let queue = workers.makeQueue("row", width: 1)
        try queue.add(first)
        workers.runAll()
        try queue.add(
            (0..<20_000).map { HandDriven("\($0)", isBrief: true, hooks: .init { $0.finish(withResult: 0) }) })
        BorrowedThread.run { first.finish(withResult: 0) }
        // The second operation ended on this thread. The others are left for a thread of the queue.
        #expect(queue.counts.finished == 2 && workers.count == 1)
        workers.runAll()
        #expect(queue.counts.finished == 20_001)
    }

    @Test func `a lent thread starts nothing in a suspended queue or beyond the width`() throws {
        let row = (0..<3).map { made("\($0)") }
        let queue = try makeQueue(row)
        queue.isSuspended = true
        BorrowedThread.run { row[0].finish(withResult: 0) }
        #expect(order.events == ["0"] && workers.count == 0)
        queue.isSuspended = false
        workers.runAll()
        #expect(order.events == ["0", "1"])
        row[1].finish(withResult: 0)
        workers.runAll()
        row[2].finish(withResult: 0)
        #expect(queue.counts.finished == 3)
    }
}
