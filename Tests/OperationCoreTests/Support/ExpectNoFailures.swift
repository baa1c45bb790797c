// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationTestKit
import Testing

/// Runs a scenario that may block on a thread of its own, and expects that it counts no failures.
func expectNoFailures(
    sourceLocation: SourceLocation = #_sourceLocation, _ scenario: @escaping @Sendable (inout Int) throws -> Void
) async throws {
    let failures = try await TestThread.run {
        var failures = 0
        try scenario(&failures)
        return failures
    }
    #expect(failures == 0, sourceLocation: sourceLocation)
}
