// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Threads that run closures at the same moment: what provokes a race without sleeping.
///
/// The threads are kept, so that a round costs microseconds and a test can afford a hundred thousand of them.
///
/// ```swift
/// import OperationCore
/// import OperationTestKit
///
/// func startAndCancelAgree() async throws {
///     try await TestThread.run {
///         let team = ThreadTeam(count: 2)
///         for _ in 0..<1_000 {
///             let operation = ClosureOperation { 1 }
///             team.run([{ operation.start() }, { operation.cancel() }])
///             if operation.outcome == nil { print("neither ended it") }
///         }
///     }
/// }
/// ```
public final class ThreadTeam: Sendable {
    private let members: [Member]

    /// Makes a team of `count` threads.
    public init(count: Int) {
        members = (0..<count).map { _ in Member() }
    }

    deinit {
        for member in members { member.dismiss() }
    }

    /// How many threads there are.
    public var count: Int { members.count }

    /// Runs all closures at once, each on a thread of its own, and blocks until all have returned.
    ///
    /// There must not be more closures than threads. One run at a time.
    @available(*, noasync, message: "This blocks the thread: call it inside TestThread.run.")
    public func run(_ bodies: [@Sendable () -> Void]) {
        precondition(bodies.count <= members.count, "A team of \(members.count) cannot run \(bodies.count) at once.")
        for (member, body) in zip(members, bodies) { member.begin(body) }
        for member in members.prefix(bodies.count) { member.waitUntilDone() }
    }

    private final class Member: Sendable {
        private let task = Locked<(@Sendable () -> Void)?>(nil)
        private let start = DispatchSemaphore(value: 0)
        private let done = DispatchSemaphore(value: 0)

        init() {
            // The thread holds the member, not the team: a dismissed member ends its thread.
            let thread = Thread { [self] in work() }
            thread.start()
        }

        func begin(_ body: @escaping @Sendable () -> Void) {
            task.withLock { $0 = body }
            start.signal()
        }

        func waitUntilDone() { done.wait() }

        func dismiss() { start.signal() }

        private func work() {
            while true {
                start.wait()
                var body = task.withLock { task in
                    defer { task = nil }
                    return task
                }
                guard body != nil else { return }
                body?()
                body = nil
                done.signal()
            }
        }
    }
}

/// Runs blocking code on a thread of its own, so that a test does not take one from the pool that Swift's tasks share.
public enum TestThread {
    /// Runs `body` on a new thread and waits for it.
    ///
    /// - Parameters:
    ///   - stackSize: The size of the thread's stack in bytes; the system's default if nil.
    ///   - body: What to run.
    public static func run<Result: Sendable>(
        stackSize: Int? = nil, _ body: @escaping @Sendable () throws -> Result
    ) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            let thread = Thread {
                continuation.resume(with: Swift.Result { try body() })
            }
            if let stackSize { thread.stackSize = stackSize }
            thread.start()
        }
    }
}
