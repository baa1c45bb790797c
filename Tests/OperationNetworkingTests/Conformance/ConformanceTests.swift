// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import Testing

@Suite(.timeLimit(.minutes(2)))
struct ConformanceTests {
    @Test(arguments: SessionKind.allCases, ConformanceCase.chosen)
    func `every session passes the conformance cases`(
        _ kind: SessionKind, _ conformanceCase: ConformanceCase
    ) async throws {
        try await conformanceCase.run(with: kind)
    }

    @Test func `there are at least 150 cases, each with a unique name`() {
        let names = ConformanceCase.all.map(\.name)
        #expect(names.count >= 150)
        #expect(Set(names).count == names.count)
    }
}
