// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// Waiting for room in a queue that is full.
@Suite(.nothingStaysAlive, .timeLimit(.minutes(3)))
struct QueueRoomTests {
    /// The way to add operations when there is room.
    enum Way: String, CaseIterable, Sendable {
        case operation, foreign, array

        /// The number of operations that are added.
        var count: Int { self == .array ? 3 : 1 }

        /// Adds the operations.
        ///
        /// Each body records that it ran.
        func add(to queue: QueueManager, _ ran: EventRecorder<Way>) async throws(OperationSetupError) {
            let body: @Sendable () -> Void = { ran.record(self) }
            switch self {
            case .operation: try await queue.addWhenThereIsRoom(ClosureOperation(body))
            case .foreign: try await queue.addWhenThereIsRoom(BlockOperation(block: body))
            case .array: try await queue.addWhenThereIsRoom((0..<3).map { _ in ClosureOperation(body) })
            }
        }

        func code(_ queue: QueueManager, _ ran: EventRecorder<Way>) async -> OperationSetupError.Code? {
            do throws(OperationSetupError) {
                try await add(to: queue, ran)
                return nil
            } catch {
                return error.code
            }
        }
    }

    private let queue: QueueManager
    private let ran = EventRecorder<Way>()
    private let present = (0..<3).map { HandDriven("\($0)") }

    init() throws {
        queue = QueueManager("room")
        queue.capacity = 3
        try queue.add(present)
    }

    private func end(_ operation: HandDriven) async {
        await operation.finishOnceBegun(withResult: 1)
    }

    private func wait(_ way: Way, as number: Int = 1) async -> Task<OperationSetupError.Code?, Never> {
        let task = Task { [queue, ran] in await way.code(queue, ran) }
        while queue.engine.roomWaiterCount < number { await Task.yield() }
        return task
    }

    @Test(arguments: Way.allCases)
    func `each way of adding waits until there is room for all operations`(way: Way) async {
        let task = await wait(way)
        for (number, operation) in present.enumerated() {
            if number < way.count {
                // Slots that become free are reserved for the waiting task.
                #expect(throws: OperationSetupError.self) { try queue.add {} }
                #expect(queue.engine.roomWaiterCount == 1)
            }
            await end(operation)
        }
        #expect(await task.value == nil)
        await queue.drained()
        #expect(ran.events == Array(repeating: way, count: way.count))
    }

    @Test(arguments: Way.allCases)
    func `canceling the waiting task adds nothing and passes the room to the next task`(way: Way) async {
        let task = await wait(way)
        if way.count > 1 { await end(present[0]) }
        task.cancel()
        #expect(await task.value == .cancelled)
        let next = Task { [queue, ran] in await Way.operation.code(queue, ran) }
        if way.count == 1 { await end(present[0]) }
        #expect(await next.value == nil)
        for operation in present[1...] { await end(operation) }
        await queue.drained()
        #expect(ran.events == [.operation])
    }

    @Test(arguments: Way.allCases)
    func `shutting down a queue ends all waits for room with an error`(way: Way) async {
        let task = await wait(way)
        async let rest = queue.shutDown(grace: .seconds(1_000))
        #expect(await task.value == .closed)
        for operation in present { await end(operation) }
        #expect(await rest.isEmpty && ran.count == 0)
    }

    @Test func `a task that waits for less room does not overtake a task that needs more`() async {
        let many = await wait(.array)
        let few = await wait(.operation, as: 2)
        for operation in present[...1] {
            await end(operation)
            await operation.ended()
        }
        #expect(throws: OperationSetupError.self) { try queue.add {} }
        #expect(ran.count == 0)
        await end(present[2])
        #expect(await many.value == nil)
        #expect(await few.value == nil)
        await queue.drained()
        // The operation was added when the first of them ended. The others may still have been running on another thread.
        #expect(ran.events.first == .array)
        #expect(ran.events.filter { $0 == .array }.count == 3 && ran.count == 4)
    }

    @Test func `adding more operations than the capacity fails, also after the capacity is reduced`() async {
        let task = await wait(.array)
        queue.capacity = 2
        #expect(await task.value == .full)
        #expect(await Way.array.code(queue, ran) == .full)
        do throws(OperationSetupError) {
            try await queue.addWhenThereIsRoom((0..<5).map { _ in HandDriven() })
        } catch {
            #expect(error.message.contains("Add fewer at a time"))
        }
        let one = await wait(.operation)
        for operation in present { await end(operation) }
        #expect(await one.value == nil)
        await queue.drained()
    }

    @Test func `an operation that cannot be added although there is room leaves the room to others`() async throws {
        let ended = ClosureOperation { 1 }, block = BlockOperation {}
        ended.start()
        block.start()
        let tasks = [
            Task { [queue] in try await queue.addWhenThereIsRoom(ended) },
            Task { [queue] in try await queue.addWhenThereIsRoom(block) },
            Task { [queue] in try await queue.addWhenThereIsRoom([ended]) },
        ]
        for operation in present { await end(operation) }
        for task in tasks { await #expect(throws: OperationSetupError.self) { try await task.value } }
        await queue.drained()
        for _ in 0..<3 { try queue.add(HandDriven()) }
        queue.cancelAll()
        await queue.drained()
    }
}
