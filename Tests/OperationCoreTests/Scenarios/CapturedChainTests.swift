// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

/// The closure of an operation that captures the next operation.
enum ClosurePlace: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case successHandler, failureHandler, cancellationHandler, completionBlock, observer, input, endAction
    case closure, task, mainQueue
    var testDescription: String { rawValue }

    fileprivate func operation(holding next: ManagedOperation, _ source: HandDriven) throws -> ManagedOperation {
        switch self {
        case .closure: return ClosureOperation { next.start() }
        case .task: return TaskOperation { next.start() }
        case .mainQueue: return MainQueueOperation { next.start() }
        default:
            let operation = HandDriven()
            try put(next, into: operation, source)
            return operation
        }
    }

    private func put(_ next: ManagedOperation, into operation: HandDriven, _ source: HandDriven) throws {
        switch self {
        case .successHandler: operation.successHandler = { _ in next.start() }
        case .failureHandler: operation.failureHandler = { _ in next.start() }
        case .cancellationHandler: operation.cancellationHandler = { _ in next.start() }
        case .completionBlock: operation.completionBlock = { next.start() }
        case .observer: operation.observe { _ in next.start() }
        case .input: try operation.receive(from: source, otherwise: .cancel) { _, _ in next.start() }
        case .endAction: operation.whenEnded { next.start() }
        case .closure, .task, .mainQueue: break
        }
    }
}

@Suite("Scenario: long chains of operations that capture each other in closures", .timeLimit(.minutes(2)))
struct CapturedChainTests {
    @Test(arguments: ClosurePlace.allCases)
    func `a chain that is released without having run is freed on a small stack`(place: ClosurePlace) async throws {
        let length = Rounds.count(ci: 30_000, soak: 1_000_000)
        let isFreed = try await TestThread.run(stackSize: 512 << 10) { () -> Bool in
            let source = HandDriven(), last = Gate()
            let row = Result {
                let end = HandDriven()
                end.successHandler = { [witness = Witness(last)] _ in withExtendedLifetime(witness) {} }
                var next: ManagedOperation = end
                for _ in 0..<length { next = try place.operation(holding: next, source) }
            }
            try row.get()
            return last.isOpen
        }
        #expect(isFreed)
    }
}
