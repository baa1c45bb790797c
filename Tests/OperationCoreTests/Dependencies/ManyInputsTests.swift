// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import Testing

private struct Refusal: Error, Equatable {}

private final class Total: SyncOperation<[Int], Refusal>, @unchecked Sendable {
    var parts: [Int] = []
    override func main() { finish(withResult: parts) }
}

@Suite("Results of many operations", .timeLimit(.minutes(3)))
struct ManyInputsTests {
    private let total = Total()
    private func parts(_ count: Int, failing: Int? = nil) -> [TypedOperation<Int, Refusal>] {
        (0..<count).map { number in
            ClosureOperation { () throws(Refusal) -> Int in
                if number == failing { throw Refusal() }
                return number
            }
        }
    }

    @Test func `results arrive in the order of the operations, whichever ends first`() async throws {
        let upstream = parts(50)
        try total.receive(fromAll: upstream) { $0.parts = $1 }
        let queue = OperationQueue()
        queue.addOperation(total)
        for operation in upstream.reversed() { queue.addOperation(operation) }
        #expect(try await total.value == Array(0..<50))
    }

    @Test func `an empty list of operations delivers an empty list of results`() async throws {
        try total.receive(fromAll: [] as [TypedOperation<Int, Refusal>]) { $0.parts = $1 + [1] }
        #expect(try await total.run() == [1])
    }

    @Test func `a missing result cancels the operation, or the rule replaces it with a value`() async throws {
        for rule in [nil, 99] {
            let upstream = parts(5, failing: 3)
            let total = Total()
            try total.receive(fromAll: upstream, otherwise: rule.map { .use($0) } ?? .cancel) { $0.parts = $1 }
            for operation in upstream { operation.start() }
            total.start()
            if rule == nil {
                #expect(total.cancellationCause?.code == .dependencyFailed)
            } else {
                #expect(total.outcome == .success([0, 1, 2, 99, 4]))
            }
        }
    }

    @Test(arguments: [false, true])
    func `if one of several dependencies is refused, none is added`(isMapped: Bool) throws {
        let upstream: [TypedOperation<Int, Refusal>] = isMapped ? parts(12).map { $0.mapResult { $0 } } : parts(2)
        try upstream[upstream.count - 1].depend(on: total, otherwise: .runAnyway)
        #expect(throws: OperationSetupError.self) { try total.receive(fromAll: upstream) { $0.parts = $1 } }
        #expect(total.dependencies.isEmpty)
        total.start()
        #expect(total.outcome == .success([]))
    }
}
