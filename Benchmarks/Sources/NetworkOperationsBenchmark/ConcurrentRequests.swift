// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import NetworkBenchmarkSupport

/// Awaits requests in a number of tasks, each of which sends one request after another, and returns the number of
/// failures.
///
/// - Parameter send: A closure that sends a request, and returns whether the response is as expected.
func sendConcurrently(
    _ count: Int, inFlight: Int, _ send: @escaping @Sendable () async throws -> Bool
) async -> Int {
    let rest = Countdown(count)
    await withTaskGroup(of: Void.self) { group in
        for _ in 0..<inFlight {
            group.addTask {
                while rest.takeOne() {
                    let isGood = try? await send()
                    rest.end(isGood: isGood == true)
                }
            }
        }
    }
    return await onOwnThread { rest.wait() }
}

/// Runs work that blocks its thread on a new thread, because the threads of Swift's tasks must not block.
func onOwnThread(_ work: @escaping @Sendable () -> Int) async -> Int {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread { continuation.resume(returning: work()) }
    }
}
