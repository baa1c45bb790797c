// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("An owner that goes", .timeLimit(.minutes(3)))
struct OwnerTokenTests {
    @Test func `its token cancels what waits and what runs`() {
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

    @Test func `a token made for it matches it by identity although weak references are nil`() {
        let operation = HandDriven()
        autoreleasing {
            let screen = OwnTokenScreen()
            operation.owner = .object(screen)
            operation.start()
        }
        #expect(operation.cancellationCause?.code == .ownerGone)
        #expect(operation.cancellationCause?.message.contains("OwnTokenScreen") == true)
    }

    @Test func `a token that is let go of while the owner lives cancels too`() {
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

    @Test func `its own deinit can still match it by identity`() {
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

    @Test func `many of one type that come and go cancel each their own`() {
        let survivor = TidyScreen()
        let surviving = HandDriven()
        surviving.owner = .object(survivor)
        surviving.start()
        for _ in 0..<200 {
            let operation = HandDriven()
            autoreleasing {
                let screen = TidyScreen()
                operation.owner = .object(screen)
                operation.start()
            }
            #expect(operation.isCancelled)
        }
        #expect(surviving.state == .executing)
        surviving.finish(withResult: 1)
    }

    @Test func `an object at the address of one that is gone has none of its operations`() {
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
            // The memory may be handed out again a little later, or to somebody else.
            let screens = (0..<64).map { _ in Screen() }
            guard let screen = screens.first(where: { ObjectIdentifier($0) == address }) else { continue }
            reuses += 1
            // Nothing is known of it yet: on Apple's systems this alone would cancel what the other left behind.
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
            // AddressSanitizer sees to it that none is.
            let isSanitized = ProcessInfo.processInfo.environment["ASAN_OPTIONS"] != nil
            #expect(reuses > 0 || isSanitized, "no address was used twice, so nothing was tested")
        #endif
    }

    @Test func `a token that outlives its object leaves another one at the address alone`() {
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
