// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A group of threads that run closures at the same time, to provoke race conditions.
///
/// The team reuses its threads. A round therefore takes only microseconds, and a test can run many rounds.
package final class ThreadTeam: Sendable {
    private let members: [Member]

    /// Creates a team with the given number of threads.
    package init(count: Int) {
        members = (0..<count).map { _ in Member() }
    }

    deinit {
        for member in members { member.dismiss() }
    }

    /// The number of threads in the team.
    package var count: Int { members.count }

    /// Runs all closures at the same time, each on its own thread, and blocks until all closures have returned.
    ///
    /// If there are more closures than threads, the program stops. Do not call this method again before it has
    /// returned.
    ///
    /// - Parameter bodies: The closures to run. The number of closures must not exceed the number of threads.
    @available(*, noasync, message: "This method blocks the thread. Call it inside TestThread.run.")
    package func run(_ bodies: [@Sendable () -> Void]) {
        precondition(
            bodies.count <= members.count,
            "A team of \(members.count) threads cannot run \(bodies.count) closures at the same time.")
        for (member, body) in zip(members, bodies) { member.begin(body) }
        for member in members.prefix(bodies.count) { member.waitUntilDone() }
    }

    private final class Member: Sendable {
        private let task = Locked<(@Sendable () -> Void)?>(nil)
        private let start = DispatchSemaphore(value: 0)
        private let done = DispatchSemaphore(value: 0)

        init() {
            // The thread holds the member, not the team, and ends when the member is dismissed.
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

/// A namespace for running blocking code on a separate thread instead of in Swift's cooperative thread pool.
package enum TestThread {
    /// Runs a closure on a new thread and returns its result.
    ///
    /// - Parameters:
    ///   - stackSize: The size, in bytes, of the thread's stack. The default is `nil`, which uses the system's default.
    ///   - body: The closure to run on the new thread.
    /// - Returns: The result of the closure.
    /// - Throws: The error that the closure throws.
    package static func run<Result: Sendable>(
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
