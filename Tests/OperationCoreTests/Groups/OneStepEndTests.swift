// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import Testing

/// Children that a canceled group ends in one step.
@Suite(
    .nothingStaysAlive, .timeLimit(.minutes(1)),
    .disabled(if: isMapping, "A group does not end mapped operations in one step."))
struct OneStepEndTests {
    @Test(arguments: [false, true])
    func `a plain operation can depend on a child that a canceled group ended, also while the group cancels others`(
        hasBegun: Bool
    ) throws {
        let queue = QueueManager("children")
        (queue.isSuspended, queue.capacity) = (true, 2)
        let group = GroupOperation(policy: .failFast, on: queue)
        let (one, early, late) = (ClosureOperation { 1 }, BlockOperation {}, BlockOperation {})
        let isQueueFull = Locked(false)
        early.addDependency(one as Operation)
        do {
            // The group releases the body of the second child after it has ended the first one.
            let lastWord = LastWord {
                if one.isFinished { late.addDependency(one as Operation) }
                isQueueFull.withLock { $0 = (try? queue.add(ClosureOperation { 2 })) == nil }
            }
            try group.add([one, ClosureOperation { withExtendedLifetime(lastWord) {} }])
        }
        if hasBegun { group.start() }
        group.cancel()
        #expect(late.dependencies.count == 1 && early.isReady && late.isReady)
        #expect(isQueueFull.withLock { $0 } == hasBegun && queue.counts.unended == (hasBegun ? 0 : 1))
    }
}
