// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import Testing

@Suite("Owner tokens and owners that are freed", .timeLimit(.minutes(3)))
struct OwnerTokenTests {
    @Test func `freeing an owner with a token cancels its waiting and executing operations`() {
        let waiting = HandDriven(), running = HandDriven(), ended = HandDriven(), other = HandDriven()
        autoreleasing {
            let screen = TokenScreen()
            for operation in [waiting, running, ended] { operation.owner = screen.operations.owner }
            for operation in [running, ended, other] { operation.start() }
            ended.finish(withResult: 1)
        }
        #expect(waiting.cancellationCause?.code == .ownerGone)
        #expect(Look(running) == .cancelled)
        #expect(running.cancellationCause?.code == .ownerGone)
        #expect(ended.outcome == .success(1))
        #expect(other.state == .executing)
        other.finish(withResult: 1)
    }

    @Test func `a token made for an owner cancels its operations when the owner is freed`() {
        let operation = HandDriven()
        operation.startWithBriefOwner(OwnTokenScreen())
        #expect(operation.cancellationCause?.code == .ownerGone)
        #expect(operation.cancellationCause?.message.contains("OwnTokenScreen") == true)
    }

    @Test func `replacing a token while its owner is alive cancels the operations of the old token`() {
        let screen = OwnTokenScreen()
        let operation = HandDriven(), next = HandDriven()
        operation.owner = screen.token?.owner
        screen.replaceToken()
        #expect(operation.isCancelled)
        next.owner = screen.token?.owner
        #expect(next.owner == .object(screen))
        #expect(screen.token?.cancelOperations(because: .requested("done")) == 1)
        #expect(next.cancellationCause == .requested("done"))
    }

    @Test func `the deinit of an owner can cancel the operations of that owner`() {
        let count = Tally()
        let operations = (0..<3).map { _ in HandDriven() }
        autoreleasing {
            let screen = TidyScreen(count: count)
            for operation in operations {
                operation.owner = .object(screen)
                operation.start()
            }
        }
        #expect(count.value == 3)
        #expect(operations.allSatisfy { $0.cancellationCause?.code == .ownerCancelled })
    }

    @Test func `each of many owners of one type cancels only its own operations when freed`() {
        let survivor = TidyScreen()
        let surviving = HandDriven()
        surviving.owner = .object(survivor)
        surviving.start()
        for _ in 0..<200 {
            let operation = HandDriven()
            operation.startWithBriefOwner(TidyScreen())
            #expect(operation.isCancelled)
        }
        #expect(surviving.state == .executing)
        surviving.finish(withResult: 1)
    }

    @Test func `an object at the address of a freed owner does not own its operations`() {
        var reuses = 0
        for _ in 0..<100 {
            let old = HandDriven()
            var address: ObjectIdentifier?
            autoreleasing {
                let screen = Screen()
                address = ObjectIdentifier(screen)
                old.owner = .object(screen)
                old.start()
            }
            defer { old.finish(withResult: 1) }
            // The allocator may reuse the memory later, or for another object.
            let screens = (0..<64).map { _ in Screen() }
            guard let screen = screens.first(where: { ObjectIdentifier($0) == address }) else { continue }
            reuses += 1
            // This object owns nothing yet. On Apple platforms, this call would cancel the operations of the freed
            // owner.
            #if !canImport(ObjectiveC)
                #expect(OperationOwner.cancelOperations(ownedBy: screen) == 0)
            #endif
            let new = HandDriven()
            new.owner = .object(screen)
            #expect(new.owner != old.owner)
            #expect(OperationOwner.cancelOperations(ownedBy: screen) == 1)
            #expect(old.state == .executing && new.isCancelled)
        }
        #if !canImport(ObjectiveC)
            // AddressSanitizer prevents any reuse.
            let isSanitized = ProcessInfo.processInfo.environment["ASAN_OPTIONS"] != nil
            #expect(reuses > 0 || isSanitized, "No address was reused, so nothing was tested.")
        #endif
    }

    @Test func `a token that outlives its owner does not cancel operations of an object at the same address`() {
        for _ in 0..<100 {
            var token: OperationOwnerToken?
            var address: ObjectIdentifier?
            autoreleasing {
                let screen = Screen()
                address = ObjectIdentifier(screen)
                token = OperationOwnerToken(for: screen)
            }
            let screen = Screen()
            guard ObjectIdentifier(screen) == address, token != nil else { continue }
            let operation = HandDriven()
            operation.owner = .object(screen)
            token = nil
            #expect(!operation.isCancelled)
        }
    }
}
