// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// A value that notes on which task it is decoded, and may wait there.
private struct NotedValue: Decodable, Sendable {
    @TaskLocal static var note: (@Sendable () -> Void)?
    let text: String

    init(from decoder: any Decoder) throws {
        text = try decoder.singleValueContainer().decode(String.self)
        Self.note?()
    }
}

/// A request that a task awaits with `run()` needs no thread for its start and its evaluation.
@Suite(.timeLimit(.minutes(2)))
struct AwaitedRequestTests {
    private let bench: OperationBench

    init() throws {
        bench = try OperationBench()
        bench.server.route("/*") { _ in .json(#""ada""#) }
    }

    @Test func `the waiting task decodes a short response`() async throws {
        let notes = EventRecorder<Int>()
        let value = try await NotedValue.$note.withValue({ notes.record(1) }) {
            try await bench.base.get("name", as: NotedValue.self).run()
        }
        #expect(value.text == "ada" && notes.events == [1])
    }

    @Test func `a long response is decoded on another thread`() async throws {
        bench.server.route("/*") { _ in .json("\"\(String(repeating: "a", count: 100_000))\"") }
        let notes = EventRecorder<Int>()
        let value = try await NotedValue.$note.withValue({ notes.record(1) }) {
            try await bench.base.get("name", as: NotedValue.self).run()
        }
        #expect(value.text.utf8.count == 100_000 && notes.events.isEmpty)
    }

    @Test func `a closure of the user does not run in the waiting task`() async throws {
        struct Refusal: Error {}
        let bench = try OperationBench()
        bench.server.route("/*") { _ in .json("{}", status: 404) }
        let notes = EventRecorder<Bool>()
        var base = bench.base
        base.rules.decodeError = { _, _ in
            notes.record(NotedValue.note != nil)
            return Refusal()
        }
        await NotedValue.$note.withValue({}) { [base] in
            _ = try? await base.get("none", as: NotedValue.self).run()
        }
        #expect(notes.events == [false])
    }

    @Test func `a request that another operation depends on is decoded on another thread`() async throws {
        let notes = EventRecorder<Int>()
        let operation = bench.base.get("name", as: NotedValue.self)
        let dependent = ClosureOperation { 1 }
        dependent.addDependency(operation)
        dependent.start()
        _ = try await NotedValue.$note.withValue({ notes.record(1) }) { try await operation.run() }
        #expect(notes.events.isEmpty)
        #expect(try await dependent.value == 1)
    }

    @Test func `a cancellation during the evaluation decides the outcome immediately`() async throws {
        let (isDecoding, mayEnd) = (Gate(), Gate())
        let operation = bench.watched(bench.base.get("name", as: NotedValue.self))
        let task = Task {
            await NotedValue.$note.withValue({
                isDecoding.open()
                mayEnd.wait()
            }) { try? await operation.run().text }
        }
        await isDecoding.passage()
        operation.cancel(because: .requested)
        #expect(operation.outcome?.cancellationCause == .requested)
        mayEnd.open()
        #expect(await task.value == nil)
    }

    @Test func `a canceled task does not begin the request`() async throws {
        let operation = bench.base.get("name", as: NotedValue.self)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try? await operation.run().text
        }
        #expect(await task.value == nil)
        #expect(operation.cancellationCause == .taskCancelled && bench.server.requests.isEmpty)
    }

    @Test func `two tasks that await one request both get the result`() async throws {
        for _ in 0..<200 {
            let operation = bench.base.get("name", as: NotedValue.self)
            async let first = operation.run()
            async let second = operation.run()
            let names = try await (first, second)
            #expect(names.0.text == "ada" && names.1.text == "ada")
        }
    }

    @Test func `an awaited request can wait for a dependency and a queue`() async throws {
        let queue = QueueManager(width: 1)
        let before = ClosureOperation { 1 }
        let operation = bench.base.get("name", as: NotedValue.self)
        operation.addDependency(before)
        try queue.add(before)
        #expect(try await operation.run().text == "ada")
        let queued = bench.base.get("name", as: NotedValue.self)
        try queue.add(queued)
        #expect(try await queued.run().text == "ada")
    }
}

/// A wait of a task that performs work in the meantime.
@Suite(.timeLimit(.minutes(1)))
struct TaskWaitTests {
    @Test func `only a waiting task performs work, and all of it before the wait ends`() async {
        let wait = TaskWait()
        #expect(!wait.perform {})
        let log = EventRecorder<Int>()
        let task = Task {
            await wait.passage()
            log.record(-1)
        }
        for number in 0..<100 {
            while !wait.perform({ log.record(number) }) { await Task.yield() }
        }
        wait.end()
        await task.value
        #expect(log.events == Array(0..<100) + [-1])
        #expect(!wait.perform {})
        await wait.passage()
    }

    @Test func `work may end the wait`() async {
        let wait = TaskWait()
        let task = Task { await wait.passage() }
        while !wait.perform({ wait.end() }) { await Task.yield() }
        await task.value
    }
}
