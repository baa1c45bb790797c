// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

// Only this one, beside the testing library: it brings the operations with it.
import OperationNetworking
import Testing

@Suite(.timeLimit(.minutes(3)))
struct ImportTests {
    @Test func `importing the networking brings the operations with it`() async throws {
        let operation: ClosureOperation<Int, Never> = ClosureOperation { 42 }
        let mapped = operation.mapResult { "\($0)" }
        #expect(try await mapped.run() == "42")
        #expect(operation.state == OperationState.finished)
    }
}
