// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

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
