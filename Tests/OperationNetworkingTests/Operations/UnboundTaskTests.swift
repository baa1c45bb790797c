// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An operation whose hook creates its task with a closure of the test.
private func making(_ bench: OperationBench, _ make: @escaping Hooked.Make) -> Hooked {
    Hooked(bench, method: "GET", make: make)
}

/// A custom task that wraps another task.
private final class Wrapped: WrappingTask {
    let task: any NetworkTask

    init(_ task: any NetworkTask) { self.task = task }
}

/// A custom session that wraps another session.
private func around(_ session: any NetworkSession) -> ClosureSession {
    ClosureSession { session.makeTask(with: $0, receiver: $1) }
}

/// A custom receiver, which passes on the text of the body.
private final class Reader: NetworkReceiver {
    private let bytes = Locked(Data())
    private let finish: @Sendable (String) -> Void

    init(_ finish: @escaping @Sendable (String) -> Void) { self.finish = finish }

    func task(_ task: any NetworkTask, didReceive head: ResponseHead) {}

    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) {
        self.bytes.withLock { $0.append(contentsOf: bytes) }
    }

    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        finish(bytes.withLock { String(decoding: $0, as: UTF8.self) })
    }
}

@Suite("Tasks of a session that is not bound to the operation", .timeLimit(.minutes(3)))
struct UnboundTaskTests {
    private let bench: OperationBench

    init() throws {
        bench = try OperationBench { _ in .text("Hello") }
    }

    @Test func `a hook may return a task of another session, and the response reaches the operation`() async throws {
        do {
            let other = try OperationBench().session
            let sessions: [any NetworkSession] = [other, around(other), URLSession(configuration: .ephemeral)]
            for session in sessions {
                let operation = bench.watched(making(bench) { request, _ in session.makeTask(with: request) })
                #expect(try await operation.run() == "Hello")
                await operation.ended()
            }
        }
        try await bench.checkNothingIsLeft()
    }

    @Test(arguments: [false, true])
    func `a download saves the body that a task of another session receives`(isTemporary: Bool) async throws {
        final class Cover: NetworkDownloadOperation<URL>, @unchecked Sendable {
            let other = Locked<(any NetworkSession)?>(nil)

            override func createTask(
                with request: NetworkRequest, using session: any NetworkSession
            ) throws -> any NetworkTask { try #require(other.withLock { $0 }).makeTask(with: request) }
        }
        let folder = try TemporaryFolder()
        do {
            let operation = bench.watched(Cover(url: bench.server.url("/"), urlSession: bench.session))
            let other = try OperationBench().session
            operation.other.withLock { $0 = other }
            if !isTemporary { operation.destination = .file(folder.url.appending(path: "cover")) }
            let file = try await operation.run()
            #expect(try Data(contentsOf: file) == Data("Hello".utf8))
            #expect(operation.downloadedFile?.length == 5)
            await operation.ended()
            try FileManager.default.removeItem(at: file)
        }
        try await bench.checkNothingIsLeft()
    }

    @Test func `the createTask of the superclass accepts another session`() async throws {
        final class Environment: NetworkDataOperation<Data>, @unchecked Sendable {
            let other = Locked<(any NetworkSession)?>(nil)

            override func createTask(
                with request: NetworkRequest, using session: any NetworkSession
            ) throws -> any NetworkTask {
                try super.createTask(with: request, using: try #require(other.withLock { $0 }))
            }

            override func evaluate(result: Data, response: HTTPURLResponse) -> Data { result }
        }
        let other = try OperationBench()
        let operation = bench.watched(Environment(url: bench.server.url("/"), urlSession: bench.session))
        operation.other.withLock { $0 = other.session }
        #expect(try await operation.run() == Data("Hello".utf8))
    }

    @Test func `a task of another session that was called before it was returned fails the operation`() async throws {
        let other = try OperationBench().session
        let calls: [@Sendable (any NetworkTask) -> Void] = [{ $0.resume() }, { $0.cancel() }, { $0.hold() }]
        for call in calls {
            let operation = making(bench) { request, _ in
                let task = other.makeTask(with: request)
                call(task)
                return task
            }
            let error = await failure(of: bench.watched(operation))
            #expect(error?.code == .unboundTask)
            #expect(error?.message.contains("the session that the hook receives") == true)
        }
    }

    @Test
    func `if two operations return the same task, the first one succeeds and the second one fails`() async throws {
        let other = try OperationBench().session
        let kept = Locked<(any NetworkTask)?>(nil)
        let make: Hooked.Make = { request, _ in
            if let task = kept.withLock({ $0 }) { return task }
            let task = other.makeTask(with: request)
            kept.withLock { $0 = task }
            return task
        }
        #expect(try await bench.watched(making(bench, make)).run() == "Hello")
        #expect(await failure(of: bench.watched(making(bench, make)))?.code == .unboundTask)
    }

    @Test func `a session that a hook kept from an earlier operation works like any other session`() async throws {
        let kept = Locked<(any NetworkSession)?>(nil)
        let first = bench.watched(
            making(bench) { request, session in
                kept.withLock { $0 = session }
                return session.makeTask(with: request)
            })
        #expect(try await first.run() == "Hello")
        await first.ended()
        let session = try #require(kept.withLock { $0 })
        #expect(
            try await bench.watched(making(bench) { request, _ in session.makeTask(with: request) }).run() == "Hello")
    }

    @Test func `a custom task that wraps a task of another session reports to the operation`() async throws {
        let other = try OperationBench().session
        let operation = bench.watched(making(bench) { request, _ in Wrapped(other.makeTask(with: request)) })
        #expect(try await operation.run() == "Hello")
    }

    @Test func `a Swift task that the hook starts does not keep the operation alive`() async throws {
        let opened = EventRecorder<Bool>()
        let background = Locked<Task<Void, Never>?>(nil)
        do {
            let operation = bench.watched(
                making(bench) { request, session in
                    background.withLock { $0 = Task { _ = await opened.events(atLeast: 1) } }
                    return session.makeTask(with: request)
                })
            #expect(try await operation.run() == "Hello")
            await operation.ended()
        }
        try await bench.checkNothingIsLeft()
        opened.record(true)
        await background.withLock { $0 }?.value
    }

    @Test func `a wrapped task that can no longer be adopted fails the operation`() async throws {
        let other = try OperationBench().session
        let hooks: [Hooked.Make] = [
            { request, _ in
                let task = other.makeTask(with: request)
                task.hold()
                return Wrapped(task)
            },
            { request, _ in
                let task = other.makeTask(with: request)
                task.resume()
                return Wrapped(task)
            },
            { request, _ in
                let tasks = [other.makeTask(with: request), other.makeTask(with: request)]
                return Wrapped(tasks[1])
            },
        ]
        for hook in hooks { #expect(await failure(of: bench.watched(making(bench, hook)))?.code == .unboundTask) }
    }

    @Test func `other requests of a hook do not prevent the adoption of a wrapped task`() async throws {
        bench.server.route("GET", "/ping") { _ in .text("pong") }
        let (other, url) = (try OperationBench().session, bench.server.url("/ping"))
        let operation = bench.watched(
            making(bench) { request, session in
                let ping = try NetworkRequest("GET", url: url)
                other.makeTask(with: ping).resume()
                // Even over the operation's session, this is not the task of the operation.
                around(session).makeTask(with: ping).resume()
                return Wrapped(other.makeTask(with: request))
            })
        #expect(try await operation.run() == "Hello")
    }

    @Test func `a task that a hook keeps is not adopted if the returned task has its own receiver`() async throws {
        for isWrapped in [false, true] {
            let session = try OperationBench().session, count = Locked(0)
            let other = ClosureSession {
                _ = count.next()
                return session.makeTask(with: $0, receiver: $1)
            }
            let kept = Locked<(any NetworkTask)?>(nil)
            let operation = Locked<Hooked?>(nil)
            let made = bench.watched(
                making(bench) { request, session in
                    kept.withLock { $0 = other.makeTask(with: request) }
                    let reader = Reader { text in operation.withLock { $0 }?.finish(withResult: "\(text), reader") }
                    let task = session.makeTask(with: request, receiver: reader)
                    return isWrapped ? Wrapped(task) : task
                })
            operation.withLock { $0 = made }
            #expect(try await made.run() == "Hello, reader")
            operation.withLock { $0 = nil }
            #expect(count.withLock { $0 } == 0 && kept.withLock { $0 } != nil)
        }
    }

    @Test func `all calls from several threads reach a task of another session`() async throws {
        final class Counted: IdleTask {
            let count = Locked(0)
            func suspend() { count.withLock { $0 += 1 } }
        }
        let made = EventRecorder<Counted>()
        let source = ClosureSession { _, _ in
            let task = Counted()
            made.record(task)
            return task
        }
        let url = try #require(URL(string: "https://example.com/"))
        let task = source.makeTask(with: try NetworkRequest("GET", url: url))
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 { group.addTask { for _ in 0..<100 { task.suspend() } } }
        }
        #expect(made.events.map { $0.count.withLock { $0 } } == [800])
    }

    @Test func `another request of a hook, whose response is dropped, does not reach the operation`() async throws {
        bench.server.route("GET", "/ping") { _ in .text("pong") }
        let (other, url) = (try OperationBench().session, bench.server.url("/ping"))
        let operation = bench.watched(
            making(bench) { request, session in
                other.makeTask(with: try NetworkRequest("GET", url: url)).resume()
                return session.makeTask(with: request)
            })
        #expect(try await operation.run() == "Hello")
    }
}
