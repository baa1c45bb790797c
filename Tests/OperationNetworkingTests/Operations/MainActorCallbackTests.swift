// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Testing

/// Tests the callbacks for a screen, all of which are called on the main actor.
@MainActor
@Suite("Callbacks on the main actor", .timeLimit(.minutes(1)))
struct MainActorCallbackTests {
    /// A view model whose state is isolated to the main actor.
    @MainActor
    final class Screen {
        var lines: [String] = []

        func follow<Operation: AnyNetworkOperation>(_ operation: Operation) -> Operation {
            operation
                .onMainActor(uploadProgress: { [weak self] in self?.lines.append("up \($0.completedBytes)") })
                .onMainActor(downloadProgress: { [weak self] in self?.lines.append("down \($0.completedBytes)") })
                .onMainActor(retry: { [weak self] in self?.lines.append("retry \($0.attempt)") })
                .onMainActor(offline: { [weak self] _ in self?.lines.append("offline") })
                .onMainActor(completion: { [weak self] operation, error in
                    self?.lines.append("end \(operation.attemptCount) \(error.map { "\($0.code)" } ?? "success")")
                })
        }
    }

    /// A delegate that implements some of the methods.
    final class Delegate: MainActorNetworkOperationDelegate {
        var lines: [String] = []
        var didReceive: (any AnyNetworkOperation) -> Void = { _ in }

        func networkOperation(_ operation: any AnyNetworkOperation, didReceive progress: TransferProgress) {
            lines.append("received \(progress.completedBytes)")
            didReceive(operation)
        }

        func networkOperation(_ operation: any AnyNetworkOperation, didFinishWith error: NetworkError?) {
            lines.append("finished \(error.map { "\($0.code)" } ?? "\(operation.anyOutcome?.result ?? "nothing")")")
        }

        func networkOperation(_ operation: any AnyNetworkOperation, wasCancelledBecause cause: CancellationCause) {
            lines.append("cancelled \(cause.code)")
        }
    }

    /// Waits until all earlier closures on the main queue were called.
    private func settled() async {
        await withCheckedContinuation { continuation in DispatchQueue.main.async { continuation.resume() } }
    }

    @Test func `each step calls its closure, and the last progress is reported before the end`() async throws {
        let bench = try RetryBench(), screen = Screen()
        bench.bench.server.route("POST", "/") { $0.number == 0 ? .status(503) : .text("Hello") }
        do {
            let operation = screen.follow(
                bench.text(bench.retry { $0.policy = .anyMethod }, method: "POST", body: .data(Data("ask".utf8))))
            #expect(try await operation.run() == "Hello")
            await operation.ended()
            await settled()
        }
        // Progress is the current value at the time of the call, which may come after the first attempt.
        #expect(Set(screen.lines.dropLast()) == ["up 3", "retry 1", "down 5"])
        #expect(screen.lines.count == 4 && screen.lines.last == "end 2 success")
        try await bench.bench.checkNothingIsLeft()
    }

    @Test func `each call adds a closure beside the handlers, and the handlers keep their queue`() async throws {
        let bench = try OperationBench { _ in .text("Hello") }, screen = Screen(), lines = EventRecorder<String>()
        let operation = bench.text()
        operation.downloadProgressHandler = { [callbacks = bench.callbacks] _ in
            dispatchPrecondition(condition: .onQueue(callbacks))
            lines.record("handler")
        }
        for name in ["first", "second"] { operation.onMainActor(downloadProgress: { _ in screen.lines.append(name) }) }
        _ = try await operation.run()
        await operation.ended()
        await bench.settled()
        await settled()
        #expect(screen.lines == ["first", "second"] && lines.events == ["handler"])
    }

    @Test func `a failure calls the completion closure with its error`() async throws {
        let bench = try OperationBench { _ in .status(404) }, screen = Screen()
        let operation = screen.follow(bench.text())
        await operation.startAndEnd()
        await settled()
        #expect(screen.lines == ["end 1 unacceptableStatus"])
    }

    @Test func `after a cancellation on the main actor, no further closure is called`() async throws {
        let bench = try OperationBench(), screen = Screen(), received = Gate()
        bench.server.route("GET", "/") { _ in
            LoopbackAnswer(
                .head(200, ["Content-Length": "500000"]), .send(Array(repeating: 1, count: 400_000)), .stallForever)
        }
        do {
            let operation = bench.text()
            operation.onMainActor(downloadProgress: { [weak operation] _ in
                operation?.cancel()
                received.open()
            })
            _ = screen.follow(operation)
            operation.start()
            await received.passage()
            await operation.ended()
            await settled()
        }
        #expect(screen.lines == [])
        try await bench.checkNothingIsLeft()
    }

    @Test func `a closure that is added while the body arrives gets the remaining progress`() async throws {
        let bench = try OperationBench(), screen = Screen(), rest = Gate(), first = Gate()
        bench.server.route("GET", "/") { _ in .pattern(300_000, stallingAfter: 200_000, until: rest) }
        let operation = bench.text()
        // The number of reports varies, but the first one is always made.
        operation.downloadProgressHandler = { _ in first.open() }
        operation.start()
        await first.passage()
        _ = screen.follow(operation)
        rest.open()
        _ = try await operation.value
        await operation.ended()
        await settled()
        #expect(screen.lines.suffix(2) == ["down 300000", "end 1 success"])
        // A callback that is added after the end is called for the end.
        operation.onMainActor(completion: { _, _ in screen.lines.append("late") })
        await settled()
        #expect(screen.lines.last == "late")
    }

    @Test func `an operation that waits for the network calls its closure on the main actor`() async throws {
        let bench = try OfflineBench(), screen = Screen()
        let operation = screen.follow(bench.operation())
        await bench.startsToWait(operation)
        await settled()
        #expect(screen.lines == ["offline"])
        bench.comeBack()
        _ = try await operation.value
        await operation.ended()
        await settled()
        #expect(screen.lines.last == "end 1 success")
    }

    @Test func `a delegate on the main actor is not retained, and reads the outcome without a cast`() async throws {
        let bench = try OperationBench { _ in .text("Hello") }, delegate = Delegate()
        bench.server.route("GET", "/missing") { _ in .status(404) }
        do {
            let operation = bench.text(), failing = bench.text("/missing")
            for operation in [operation, failing] {
                operation.mainActorDelegate = delegate
                #expect(operation.mainActorDelegate === delegate)
                await operation.startAndEnd()
                await settled()
            }
            weak var gone: Delegate?
            do {
                let short = Delegate()
                (gone, operation.mainActorDelegate) = (short, short)
            }
            #expect(gone == nil && operation.mainActorDelegate == nil)
        }
        #expect(delegate.lines == ["received 5", "finished Hello", "finished unacceptableStatus"])
        try await bench.checkNothingIsLeft()
    }

    @Test
    func `a late delegate is notified once, and a delegate that cancels gets only the cancellation`() async throws {
        let bench = try OperationBench { _ in .text("Hello") }, delegate = Delegate()
        bench.server.route("GET", "/part") { _ in .stalling(after: "Hello") }
        let operation = bench.text()
        await operation.startAndEnd()
        for _ in 0..<2 { operation.mainActorDelegate = delegate }
        await settled()
        #expect(delegate.lines == ["finished Hello"])
        let second = Delegate()
        operation.mainActorDelegate = second
        await settled()
        #expect(second.lines == ["finished Hello"] && delegate.lines.count == 1)
        let cancelled = bench.text("/part"), received = Gate()
        delegate.didReceive = { operation in
            operation.cancel()
            received.open()
        }
        cancelled.mainActorDelegate = delegate
        cancelled.start()
        await received.passage()
        await cancelled.ended()
        await settled()
        #expect(delegate.lines.suffix(2) == ["received 5", "cancelled requested"])
    }

    @Test func `a base that is applied twice calls its closures once`() async throws {
        let bench = try OfflineBench(), screen = Screen()
        let base = NetworkBase(bench.bench.server.url("/")) { base in
            base.onMainActor(offline: { _ in screen.lines.append("offline") })
        }
        let operation = bench.operation().using(base).using(base)
        await bench.startsToWait(operation)
        await settled()
        #expect(screen.lines == ["offline"])
        bench.comeBack()
        _ = try await operation.value
    }

    @Test func `if a handler cancels the operation, the delegate does not get that progress report`() async throws {
        let bench = try OperationBench(), listener = HandlerLog()
        bench.server.route("GET", "/") { _ in .stalling(after: "Hello") }
        let operation = bench.text()
        operation.delegate = listener
        operation.onDownloadProgress { operation, _ in operation.cancel() }
        operation.start()
        #expect(await listener.lines.events(atLeast: 1) == ["delegate cancelled"])
        await bench.settled()
        #expect(listener.lines.events == ["delegate cancelled"])
    }

    @Test func `closures that hold their operation are released when it ends`() async throws {
        let bench = try OperationBench { _ in .text("Hello") }
        do {
            let operation = bench.text()
            operation.onMainActor(downloadProgress: { _ in withExtendedLifetime(operation) {} })
                .onMainActor(retry: { _ in withExtendedLifetime(operation) {} })
                .onMainActor(completion: { _, _ in withExtendedLifetime(operation) {} })
            await operation.startAndEnd()
        }
        await settled()
        try await bench.checkNothingIsLeft()
    }

    @Test func `closures that hold their operation are released when they are suppressed or added late`() async throws {
        let bench = try OperationBench { _ in .text("Hello") }, screen = Screen()
        do {
            let operation = bench.text()
            let hold = { @MainActor @Sendable in withExtendedLifetime(operation) {} }
            screen.follow(operation).onMainActor(downloadProgress: { _ in hold() }).onMainActor(offline: { _ in hold() }
            )
            operation.start()
            // The main actor calls no closure during this loop.
            while operation.outcome == nil { sched_yield() }
            operation.cancel()
            await operation.ended()
            await settled()
            #expect(operation.outcome == .success("Hello") && screen.lines == [])
            operation.onMainActor(retry: { _ in hold() })
        }
        await settled()
        try await bench.checkNothingIsLeft()
    }

    @Test func `a base adds closures to all of its operations, and a realm reports its events`() async throws {
        let bench = try TokenBench(), screen = Screen(), clock = ManualClock()
        bench.server.route("GET", "/") {
            $0.number == 1 ? .status(503) : $0.number == 0 ? .status(401) : .text("Hello")
        }
        let base = NetworkBase(bench.server.url("/")) { base in
            base.session = bench.bench.session
            base.retry = Retry(backoff: .constant(.zero), throttledBackoff: .constant(.zero), budget: nil)
            base.onMainActor(retry: { screen.lines.append("retry \($0.attempt)") })
            base.authenticate(
                by: bench.authenticator(change: { options in
                    options.onMainActor(event: { screen.lines.append("\($0.kind)") })
                }))
        }
        let operation = base.get("", as: String.self)
        operation.clock = clock
        #expect(try await operation.run() == "Hello")
        await operation.ended()
        await settled()
        let refresh = try #require(screen.lines.firstIndex(of: "refreshBegan"))
        #expect(refresh < screen.lines.firstIndex(of: "retry 2") ?? 0)
    }
}
