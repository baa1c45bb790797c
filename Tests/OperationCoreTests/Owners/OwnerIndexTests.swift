// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit
import Testing

@Suite("The index of owners", .timeLimit(.minutes(Rounds.minutes)))
struct OwnerIndexTests {
    @Test func `after random insertions and removals, the index agrees with a list of pairs`() {
        for seed in Rounds.firstSeed..<Rounds.firstSeed + UInt64(Rounds.count(ci: 300, soak: 20_000)) {
            var random = SeededGenerator(seed: seed)
            var book = OwnerIndex()
            var model: [(name: String, membership: OwnerMembership)] = []
            let operation = Operation()
            for _ in 0..<200 {
                let name = "\(Int.random(in: 0..<4, using: &random))"
                if random.chance(3, in: 5) {
                    let membership = OwnerMembership(of: operation, to: .named(name))
                    book.enter(membership, owner: nil)
                    model.append((name, membership))
                } else if let index = model.indices.randomElement(using: &random) {
                    book.withdraw(model.remove(at: index).membership)
                }
                let own = book.answer(.name(name)).members.map(ObjectIdentifier.init)
                let expected = model.filter { $0.name == name }.map { ObjectIdentifier($0.membership) }
                // In insertion order, whichever members were removed.
                #expect(own == expected, "seed \(seed)")
                #expect(book.groupCount == Set(model.map(\.name)).count, "seed \(seed)")
            }
        }
    }

    @Test func `a membership withdrawn before it is entered stays out, and a second withdrawal is harmless`() {
        var book = OwnerIndex()
        let operation = Operation()
        let membership = OwnerMembership(of: operation, to: "a")
        book.withdraw(membership)
        book.enter(membership, owner: nil)
        #expect(book.answer(.name("a")).members.isEmpty)
        let other = OwnerMembership(of: operation, to: "a")
        book.enter(other, owner: nil)
        book.withdraw(other)
        book.withdraw(other)
        #expect(book.groupCount == 0)
    }

    @Test func `a freed owner gets no new entries, and its old entries are found only as freed`() {
        var book = OwnerIndex()
        let operation = Operation()
        var screen: Screen? = Screen()
        let membership = screen.map { OwnerMembership(of: operation, to: .object($0)) }
        let late = screen.map { OwnerMembership(of: operation, to: .object($0)) }
        let address = screen.map(ObjectIdentifier.init)
        guard let membership, let late, let address else { return }
        book.enter(membership, owner: screen)
        #expect(book.answer(.object(address)).members.isEmpty)
        screen = nil
        book.enter(late, owner: nil)
        #expect(book.answer(.object(address)).members.map(ObjectIdentifier.init) == [ObjectIdentifier(membership)])
        book.withdraw(membership)
        #expect(book.groupCount == 0)
    }

    @Test func `with a million entries of 1,000 owners, a lookup visits only the entries of one owner`() {
        let (owners, each) = (1_000, 1_000)
        var book = OwnerIndex()
        let operation = Operation()
        let names = (0..<owners).map { OperationOwner.named("\($0)") }
        for _ in 0..<each {
            for name in names { book.enter(OwnerMembership(of: operation, to: name), owner: nil) }
        }
        #expect(book.groupCount == owners)
        #expect(book.visits == 0)
        let members = book.answer(.name("77")).members
        #expect(members.count == each)
        #expect(book.visits == each)
        for member in members { book.withdraw(member) }
        #expect(book.answer(.name("77")).members.isEmpty)
        #expect(book.groupCount == owners - 1)
        #expect(book.visits == each)
    }

    @Test func `with 1,000 owners of many operations, canceling one cancels only its own operations`() async throws {
        let each = Rounds.count(ci: 100, soak: 1_000)
        let counts = try await TestThread.run {
            autoreleasing {
                let screens = (0..<1_000).map { _ in Screen() }
                let owners = screens.map { OperationOwner.object($0) }
                let operations = (0..<each).flatMap { _ in
                    owners.map { owner in
                        let operation = HeldWork()
                        operation.owner = owner
                        return operation
                    }
                }
                let told = OperationOwner.cancelOperations(ownedBy: screens[77])
                let cancelled = operations.enumerated().filter(\.element.isCancelled).map(\.offset)
                return [told, cancelled.count, cancelled.count { $0 % 1_000 == 77 }, operations.count]
            }
        }
        #expect(counts == [each, each, each, each * 1_000])
        if Rounds.isSoak { print("soak: owners: \(counts[3]) operations of 1000 owners") }
    }
}
