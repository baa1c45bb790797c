// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// A sequence of the numbers that a closure returns for the indices 0, 1, 2, … until it returns `nil`.
struct Numbers: AsyncSequence, Sendable {
    /// The requested indices, in order.
    let asked = EventRecorder<Int>()
    let make: @Sendable (_ index: Int) async throws -> Int?

    struct AsyncIterator: AsyncIteratorProtocol {
        let numbers: Numbers
        var index = 0

        mutating func next() async throws -> Int? {
            numbers.asked.record(index)
            defer { index += 1 }
            return try await numbers.make(index)
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(numbers: self) }

    /// Returns a sequence of the first numbers, without pauses.
    static func first(_ count: Int) -> Numbers { Numbers { $0 < count ? $0 : nil } }
}

/// Maps whose elements come from an asynchronous sequence.
@Suite(.nothingStaysAlive, .timeLimit(.minutes(1)))
struct AsyncSourceTests {
    private enum Context {
        @TaskLocal static var number = 0
    }

    private func double(_ number: Int) -> ClosureOperation<Int, Never> { ClosureOperation { number * 2 } }

    /// Yields often enough for other tasks to reveal a fault.
    private func letOthersRun() async { for _ in 0..<2_000 { await Task.yield() } }

    @Test func `results have the order of the elements, in whatever order the operations end`() async throws {
        let children = (0..<3).map { HandDriven("\($0)") }
        let group = GroupOperation.map(Numbers.first(3), width: 3) { children[$0] }
        group.start()
        for child in children { try await waitUntil("it runs") { child.state == .executing } }
        for number in [2, 0, 1] { children[number].finish(withResult: number * 10) }
        #expect(try await group.value == [0, 10, 20])
    }

    @Test func `an AsyncStream, an AsyncThrowingStream and a mapped sequence can be sources`() async throws {
        let stream = AsyncStream { continuation in
            for number in 0..<5 { continuation.yield(number) }
            continuation.finish()
        }
        let throwing = AsyncThrowingStream<Int, any Error> { continuation in
            for number in 0..<5 { continuation.yield(number) }
            continuation.finish()
        }
        let expected = [0, 2, 4, 6, 8]
        #expect(try await GroupOperation.map(stream, width: 2) { double($0) }.run() == expected)
        #expect(try await GroupOperation.map(throwing, width: 2) { double($0) }.run() == expected)
        let mapped = Numbers.first(5).map { $0 + 1 }
        #expect(try await GroupOperation.map(mapped, width: 2) { double($0) }.run() == [2, 4, 6, 8, 10])
    }

    @Test(arguments: [1, 4]) func `a sequence without elements gives no results`(width: Int) async throws {
        #expect(try await GroupOperation.map(Numbers.first(0), width: width) { double($0) }.run() == [])
        let stream = AsyncStream<Int> { $0.finish() }
        #expect(try await GroupOperation.map(stream, width: width) { double($0) }.run() == [])
    }

    @Test func `a map of 10,000 elements never has more operations than its width`() async throws {
        let present = Tally()
        let group = GroupOperation.map(Numbers.first(10_000), width: 4) { number in
            present.add()
            return ClosureOperation {
                present.add(-1)
                return number
            }
        }
        #expect(try await group.run() == Array(0..<10_000))
        #expect(present.value == 0 && present.peak <= 4)
    }

    @Test func `a map reads nothing before its start, and then reads ahead only by its width`() async throws {
        let (numbers, gate, made) = (Numbers.first(20), Gate(), EventRecorder<Int>())
        let group = GroupOperation.map(numbers, width: 2) { number in
            made.record(number)
            return TaskOperation {
                await gate.passage()
                return number
            }
        }
        await letOthersRun()
        #expect(numbers.asked.count == 0)
        group.start()
        _ = await numbers.asked.events(atLeast: 4)
        await letOthersRun()
        #expect(made.events == [0, 1] && numbers.asked.events == [0, 1, 2, 3])
        gate.open()
        #expect(try await group.value == Array(0..<20))
    }

    @Test func `a group that is never started reads nothing and releases the sequence`() async throws {
        let census = LiveObjects()
        let asked = EventRecorder<Int>()
        do {
            let witness = census.track(Witness())
            let numbers = Numbers { index in
                asked.record(index)
                return withExtendedLifetime(witness) { 1 }
            }
            _ = GroupOperation.map(numbers, width: 2) { double($0) }
        }
        #expect(census.count == 0 && asked.count == 0)
    }

    @Test func `operations run while the sequence waits, and the wait takes up no slot`() async throws {
        let queue = QueueManager("narrow", width: 1)
        let next = (0..<3).map { _ in Gate() }
        let numbers = Numbers { index in
            if index < 3 { await next[index].passage() }
            return index < 3 ? index : nil
        }
        let ended = EventRecorder<Int>()
        let group = GroupOperation.map(numbers, width: 4) { number in
            ClosureOperation {
                ended.record(number)
                return number
            }
        }
        try queue.add(group)
        next[0].open()
        #expect(await ended.events(atLeast: 1) == [0])
        let other = ClosureOperation { 1 }
        try queue.add(other)
        #expect(try await other.value == 1)
        try await waitUntil("it says what it waits for") {
            queue.explain(group).contains("waiting for the next element of its sequence")
        }
        #expect(group.state == .executing)
        for gate in next { gate.open() }
        #expect(try await group.value == [0, 1, 2])
        await queue.drained()
    }

    @Test func `the task that reads the sequence inherits task-local values from the outer group`() async throws {
        let numbers = Numbers { index in index < 2 ? Context.number : nil }
        let values = try await Context.$number.withValue(7) {
            try await GroupOperation { group in
                try await group.run(GroupOperation.map(numbers, width: 1) { number in ClosureOperation { number } })
            }.run()
        }
        #expect(values == [7, 7])
    }

    // Cancellation.

    @Test func `a waiting sequence has been canceled when cancel() returns`() async throws {
        let (isWaiting, isCancelled) = (Gate(), Gate())
        let numbers = Numbers { index in
            if index == 0 { return 0 }
            await isCancelled.openedByCancellation(afterOpening: isWaiting)
            throw CancellationError()
        }
        let child = HandDriven()
        let group = GroupOperation.map(numbers, width: 2) { _ in child }
        group.start()
        await isWaiting.passage()
        group.cancel(because: .requested("enough"))
        #expect(isCancelled.isOpen)
        await group.ended()
        #expect(group.cancellationCause == .requested("enough") && child.cancellationCause?.code == .groupCancelled)
    }

    @Test func `a sequence that ignores its cancellation does not keep the group alive`() async throws {
        let (isWaiting, never) = (Gate(), Gate())
        let census = LiveObjects()
        defer { never.open() }
        do {
            let numbers = Numbers { index in
                isWaiting.open()
                await never.passage()
                return index
            }
            let group = census.track(GroupOperation.map(numbers, width: 2) { double($0) })
            group.start()
            await isWaiting.passage()
            await group.cancelAndEnd()
            #expect(group.isCancelled)
        }
        let left = try await TestThread.run { census.countAtRest(limit: .seconds(20)) }
        #expect(left == 0 && !never.isOpen)
    }

    @Test func `a map that is canceled before its start, or with its outer group, reads nothing`() async throws {
        let numbers = Numbers.first(3)
        let map = GroupOperation.map(numbers, width: 2) { double($0) }
        map.cancel()
        await map.startAndEnd()
        let outer = GroupOperation(policy: .failFast)
        let inner = GroupOperation.map(numbers, width: 2) { double($0) }
        try outer.add(inner)
        outer.cancel()
        await outer.startAndEnd()
        #expect(map.isCancelled && inner.isCancelled && numbers.asked.count == 0)
    }

    // Failures.

    @Test func `an error of the sequence immediately fails the group and cancels running children`() async throws {
        let gate = Gate()
        let numbers = Numbers { index in
            if index < 2 { return index }
            await gate.passage()
            throw Flaw.first
        }
        let children = (0..<2).map { HandDriven("\($0)") }
        // As many children run as the width allows.
        let group = GroupOperation.map(numbers, width: 2) { children[$0] }.named("pages")
        group.start()
        for child in children { try await waitUntil("it runs") { child.state == .executing } }
        children[0].finish(withResult: 0)
        gate.open()
        await group.ended()
        let failure = try #require(group.outcome?.error)
        #expect(failure.sourceError as? Flaw == .first && failure.underlyingError as? Flaw == .first)
        #expect(failure.child == nil && failure.siblings.isEmpty)
        #expect(failure.message == "The sequence of elements of pages failed: first")
        let cause = children[1].cancellationCause
        #expect(cause?.code == .groupFailed && cause?.underlyingError as? Flaw == .first)
        #expect("\(cause ?? .requested)".contains("because the sequence of the group's elements failed (pages)"))
    }

    @Test func `an error of the sequence immediately fails the group even when no slot is free`() async throws {
        let numbers = Numbers { index in
            if index == 1 { throw OperationFailure<Flaw>.failed(.second) }
            return index
        }
        let child = HandDriven()
        let group = GroupOperation.map(numbers, width: 1) { _ in child }
        await group.startAndEnd()
        // The group unwraps the error in an `OperationFailure`.
        #expect(group.outcome?.error?.sourceError as? Flaw == .second && child.isCancelled)
    }

    @Test func `a cancellation error that the sequence throws fails the group like any other error`() async throws {
        let errors: [any Error] = [CancellationError(), OperationFailure<Flaw>.cancelled(.requested("no more"))]
        for error in errors {
            let numbers = Numbers { _ in throw error }
            let group = GroupOperation.map(numbers, width: 1) { double($0) }
            await group.startAndEnd()
            let failure = try #require(group.outcome?.error)
            #expect(failure.sourceError.map { "\(type(of: $0)) \($0)" } == "\(type(of: error)) \(error)")
            #expect(failure.child == nil && !group.isCancelled)
        }
    }

    @Test func `a sequence that throws at its first element fails the group`() async throws {
        for _ in 0..<500 {
            let numbers = Numbers { _ in throw Flaw.first }
            let group = GroupOperation.map(numbers, width: 1) { double($0) }
            await group.startAndEnd()
            #expect(group.outcome?.error?.sourceError as? Flaw == .first)
        }
    }

    @Test func `the first failing child cancels the sequence, and no more children are created`() async throws {
        let (isWaiting, isCancelled, made) = (Gate(), Gate(), EventRecorder<Int>())
        let numbers = Numbers { index in
            if index < 2 { return index }
            await isCancelled.openedByCancellation(afterOpening: isWaiting)
            return index
        }
        let children = (0..<2).map { HandDriven("\($0)") }
        let group = GroupOperation.map(numbers, width: 4) { number in
            made.record(number)
            return children[number]
        }
        group.start()
        await isWaiting.passage()
        for child in children { try await waitUntil("it runs") { child.state == .executing } }
        children[1].finish(withError: .second)
        await group.ended()
        let failure = group.outcome?.error
        #expect(
            failure?.underlyingError as? Flaw == .second && failure?.child?.name == "1, element 1 (1)"
                && failure?.sourceError == nil)
        #expect(isCancelled.isOpen && children[0].isCancelled && made.events == [0, 1])
    }

    @Test func `progress is reported as complete once, when the sequence has ended`() async throws {
        let queue = DispatchQueue(label: "progress"), told = EventRecorder<Double>()
        let (gates, last) = ((0..<3).map { _ in Gate() }, Gate())
        // Each element comes when the operation before it has ended.
        let numbers = Numbers { index in
            if index > 0 { await gates[index - 1].passage() }
            if index == 3 { await last.passage() }
            return index < 3 ? index : nil
        }
        let group = GroupOperation.map(numbers, width: 1) { number in
            ClosureOperation {
                gates[number].open()
                return number
            }
        }
        group.callbackQueue = queue
        group.groupProgressHandler = { told.record($0.fraction) }
        group.start()
        for gate in gates { await gate.passage() }
        try await waitUntil("three elements are done") { group.groupProgress.completedWeight >= 3 }
        #expect(group.groupProgress.completedWeight == 3 && group.groupProgress.totalWeight == 4)
        last.open()
        await group.ended()
        await queue.drain()
        #expect(told.events.last == 1 && told.events.filter { $0 == 1 }.count == 1, "\(told.events)")
    }

    @Test func `the result of a recovered child keeps its position among the results`() async throws {
        let group = GroupOperation.map(Numbers.first(20), width: 3) { number in
            ClosureOperation<Int, Flaw> { () throws(Flaw) in
                if number % 5 == 0 { throw .first }
                return number
            }
        }
        group.recover { (failed: FailedChild<Int>) in .result(-1) }
        #expect(try await group.run() == (0..<20).map { $0 % 5 == 0 ? -1 : $0 })
    }

    // Suspension.

    @Test func `a suspended group requests no further elements`() async throws {
        let (gate, made) = (Gate(), EventRecorder<Int>())
        let numbers = Numbers { index in
            if index == 1 { await gate.passage() }
            return index < 10 ? index : nil
        }
        let group = GroupOperation.map(numbers, width: 4) { number in
            made.record(number)
            return double(number)
        }
        group.start()
        _ = await numbers.asked.events(atLeast: 2)
        group.suspend()
        gate.open()
        await letOthersRun()
        #expect(numbers.asked.events == [0, 1] && !made.events.contains(1))
        group.resume()
        #expect(try await group.value == (0..<10).map { $0 * 2 })
    }

    @Test func `the explanation of a suspended group without children says only that it is suspended`() async throws {
        let queue = QueueManager("maps"), gate = Gate()
        let numbers = Numbers { _ in
            await gate.passage()
            return nil
        }
        let group = GroupOperation.map(numbers, width: 1) { double($0) }.named("pages")
        try queue.add(group)
        try await waitUntil("it says what it waits for") { queue.explain(group).contains("the next element") }
        group.suspend()
        #expect(queue.explain(group) == "pages runs in queue maps: it began and was suspended.")
        group.resume()
        gate.open()
        #expect(try await group.value == [])
    }

    @Test func `a suspended group that waits for its sequence can be canceled`() async throws {
        let gate = Gate()
        let numbers = Numbers { index in
            await gate.passage()
            return index
        }
        let group = GroupOperation.map(numbers, width: 4) { double($0) }
        group.start()
        _ = await numbers.asked.events(atLeast: 1)
        group.suspend()
        await group.cancelAndEnd()
        #expect(group.isCancelled)
        gate.open()
    }
}
