// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite(.serialized, .timeLimit(.minutes(3)))
struct OwnerLifetimeTests {
    @Test func `an operation and its owner do not keep each other alive`() {
        let census = LiveObjects()
        autoreleasing {
            let screen = census.track(Screen()), operation = census.track(HandDriven())
            operation.owner = .object(screen)
            operation.startAndFinish(withResult: 1)
        }
        #expect(census.count == 0)
        autoreleasing {
            let screen = census.track(Screen())
            for _ in 0..<10 { census.track(HandDriven()).owner = .object(screen) }
            #expect(census.count == 1)
            #expect(OperationOwner.cancelOperations(ownedBy: screen) == 0)
        }
        #expect(census.count == 0)
    }

    @Test func `an operation is removed from its owner when it finishes and when it is freed`() {
        let name = "owner lifetime tests: leaving"
        func count() -> Int { OwnerRegistry.shared.entryCount(.name(name)) }
        let finished = HandDriven(), cancelled = HandDriven()
        for operation in [finished, cancelled] { operation.owner = .named(name) }
        autoreleasing {
            let freed = HandDriven()
            freed.owner = .named(name)
            #expect(count() == 3)
        }
        #expect(count() == 2)
        cancelled.cancel()
        #expect(count() == 2)
        for operation in [finished, cancelled] { operation.start() }
        #expect(count() == 1)
        finished.finish(withResult: 1)
        #expect(count() == 0)
        #expect(finished.owner == .named(name))
    }

    @Test func `plain operations are removed from the registry when they finish or are freed`() {
        let census = LiveObjects()
        let before = OwnerRegistry.shared.plainCount
        for round in 0..<2_000 {
            autoreleasing {
                let operation = census.track(BlockOperation {})
                OperationOwner.mark(operation, as: "owner lifetime tests")
                if round.isMultiple(of: 2) { operation.start() }
            }
        }
        #expect(census.count == 0)
        // The registry removes entries in batches, so a bounded number remains.
        #expect(OwnerRegistry.shared.plainCount <= 2 * before + 200)
        #expect(OperationOwner.cancelOperations(ownedBy: "owner lifetime tests") == 0)
    }

    @Test func `marking a finished operation does not register it`() {
        let operation = BlockOperation {}
        operation.start()
        OperationOwner.mark(operation, as: "owner lifetime tests: ended")
        #expect(OperationOwner.owner(of: operation) == nil)
    }

    @Test func `an operation whose deinit cancels the operations of its owner is freed`() {
        let census = LiveObjects()
        let screen = Screen()
        let other = HandDriven()
        other.owner = .object(screen)
        autoreleasing {
            let word = LastWord { OperationOwner.cancelOperations(ownedBy: screen) }
            let operation = census.track(HandDriven(hooks: .init(main: { _ in withExtendedLifetime(word) {} })))
            operation.owner = .object(screen)
        }
        #expect(census.count == 0)
        #expect(other.isCancelled)
    }
}
