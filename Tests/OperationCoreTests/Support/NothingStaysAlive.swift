// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import OperationTestKit
import Testing

/// Checks that every queue and operation which a test makes is freed after the test.
///
/// It tracks objects that are created in the task of the test and in tasks that inherit from it, but not objects that
/// are created on the test's own threads.
struct NothingStaysAlive: SuiteTrait, TestTrait, TestScoping {
    var isRecursive: Bool { true }

    func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? { testCase == nil ? nil : self }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        #if DEBUG
            await Self.makeSharedObjects.value
            let census = LiveObjects()
            try await LifetimeProbe.$note.withValue({ census.track($0) }) { try await function() }
            let count = try await TestThread.run { census.countAtRest(limit: .seconds(20)) }
            if count > 0 { Issue.record("\(count) objects stay alive after the test: \(census.types.prefix(10))") }
        #else
            try await function()
        #endif
    }

    /// Creates the queue that all groups without a queue share, because it stays alive.
    private static let makeSharedObjects = Task.detached {
        _ = try? await GroupOperation<Int, any Error> { group in try await group.run(ClosureOperation { 1 }) }.run()
    }
}

extension Trait where Self == NothingStaysAlive {
    /// Checks that every queue and operation which a test makes is freed after the test.
    static var nothingStaysAlive: Self { Self() }
}
