// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationTestKit

// Actors that take turns with the workers.
extension SchedulerScenario {
    func add(_ generator: inout SeededGenerator) -> Bool? {
        let rest = members.filter { !$0.isAdded }
        guard let member = rest.randomElement(using: &generator) else { return false }
        // Operations before a barrier must not depend on operations that are added after it.
        let order = members.filter { $0.queue == member.queue && !$0.isAdded }
        let chosen = order.min { $0.number < $1.number } ?? member
        chosen.isAdded = true
        history.append("adds \(chosen.number)")
        do throws(OperationSetupError) {
            let queue = queues[chosen.queue]
            if chosen.isBarrier, canBeBarrier(chosen) {
                try queue.addBarrier(chosen.operation)
            } else {
                chosen.isBarrier = false
                try queue.add(chosen.operation)
            }
        } catch {
            guard error.code == .full else {
                fault("\(chosen.number) was refused: \(error)")
                return true
            }
            history.append("no room for \(chosen.number)")
            chosen.isAdded = false
            return nil
        }
        return true
    }

    /// Whether no operation in the queue waits for an operation that is still to be added.
    private func canBeBarrier(_ member: Member) -> Bool {
        members.allSatisfy { other in
            other === member || other.isAdded && other.upstream.allSatisfy { $0.isAdded && $0 !== member }
                || !other.isAdded && other.number > member.number
        }
    }

    func meddle(_ generator: inout SeededGenerator) -> Bool? {
        guard let member = members.randomElement(using: &generator) else { return false }
        let queue = queues[member.queue]
        switch Int.random(in: 0..<23, using: &generator) {
        case 0:
            history.append("cancels \(member.number)")
            member.operation.cancel()
        case 1:
            history.append("suspends q\(member.queue)")
            queue.isSuspended = true
            takenBeforeSuspension[member.queue] = taken(in: member.queue)
        case 2, 3, 4:
            history.append("resumes q\(member.queue)")
            queue.isSuspended = false
        case 5:
            let width = Int.random(in: 1...3, using: &generator)
            history.append("width \(width) of q\(member.queue)")
            queue.width = width
            takenBeforeWidth[member.queue] = taken(in: member.queue)
        case 6:
            member.operation.queuePriority =
                [.veryLow, .low, .normal, .high, .veryHigh].randomElement(using: &generator) ?? .normal
        case 8:
            waits += 1
            queue.engine.whenDrained(QueueWait { [wakes] in wakes.add() })
        case 9 where generator.chance(1, in: 10):
            history.append("cancels all of q\(member.queue)")
            strangers.mayBeDropped = true
            queue.cancelAll()
        case 10: return finishEarly(member)
        case 11, 12:
            history.append("a second passes")
            clock.advance(by: .seconds(1))
        case 13: addStranger(to: member.queue, generator.chance(1, in: 2), generator.chance(1, in: 2))
        case 14:
            let capacity = generator.chance(1, in: 2) ? nil : Int.random(in: 1...6, using: &generator)
            history.append("capacity \(capacity ?? -1) of q\(member.queue)")
            queue.capacity = capacity
        case 15 where generator.chance(1, in: 4): cancelOwner(Int.random(in: owners.indices, using: &generator))
        case 16 where generator.chance(1, in: 10):
            history.append("the owner goes")
            screen = nil
        default: return generator.chance(1, in: 4) ? false : nil
        }
        return true
    }

    private func taken(in queue: Int) -> Set<Int> {
        Set(queues[queue].snapshot.entries(.running).compactMap { Int($0.name) })
    }

    /// Sets a result before the body starts.
    private func finishEarly(_ member: Member) -> Bool? {
        guard member.operation.state == .notStarted, member.operation.outcome == nil else { return nil }
        history.append("finishes \(member.number) early")
        member.reasonNotToRun = "it was finished before"
        member.operation.finish(withResult: member.number)
        return true
    }

    /// Adds a closure or a plain operation, perhaps one whose deinit cancels others.
    private func addStranger(to queue: Int, _ isClosure: Bool, _ hasLastWord: Bool) {
        let number = strangers.added
        let word = hasLastWord ? lastWord("of stranger \(number)") : nil
        let body: @Sendable () -> Void = { [unowned self] in
            withExtendedLifetime(word) {}
            strangers.begun += 1
            history.append("begins stranger \(number)")
        }
        do throws(OperationSetupError) {
            if isClosure {
                try queues[queue].add(body)
            } else {
                let operation = BlockOperation(block: body)
                try queues[queue].add(operation)
                strangers.operations.append(operation)
            }
            strangers.added += 1
            history.append("adds stranger \(number) to q\(queue)")
        } catch {
            if error.code != .full { fault("a stranger was refused: \(error)") }
        }
    }

    private func cancelOwner(_ owner: Int) {
        history.append("cancels all of owner \(owner)")
        isCancellingOwner = true
        OperationOwner.cancelOperations(ownedBy: owners[owner])
        isCancellingOwner = false
        // The address of a freed owner can belong to another object.
        if owners[owner].isGone { return }
        for member in members where member.owner == owner && member.operation.outcome == nil {
            fault("\(member.number) was left out when its owner canceled all")
        }
    }

    /// Other threads continue while one thread cancels the operations of an owner.
    func stepWhileCancelling() {
        guard isCancellingOwner else { return }
        isCancellingOwner = false
        for _ in 0..<4 { workers.step(Int.random(in: 0..<3, using: &generator)) }
        isCancellingOwner = true
    }

    func finish(_ generator: inout SeededGenerator) -> Bool? {
        let executing = members.filter { $0.operation.state == .executing && $0.operation is HandDriven }
        guard let member = executing.randomElement(using: &generator) else { return nil }
        history.append("finishes \(member.number)")
        let finish = { (member.operation as? HandDriven)?.finish(withResult: member.number) ?? () }
        // The next operation may start on the same thread before the end is reported to all.
        if generator.chance(1, in: 2) { BorrowedThread.run(finish) } else { finish() }
        return true
    }

    /// Blocks a body: its thread takes no step, and the other threads do everything they can.
    ///
    /// Afterward, no operation that could start may be left.
    func block(_ generator: inout SeededGenerator) -> Bool? {
        guard generator.chance(1, in: 12) else { return generator.chance(1, in: 8) ? false : nil }
        let blocked = (0..<workers.count).filter(workers.isBusy).randomElement(using: &generator)
        history.append("blocks worker \(blocked ?? -1)")
        let identity = blocked.flatMap(workers.identity)
        while let other = (0..<workers.count).first(where: { workers.identity($0) != identity }) { workers.step(other) }
        for queue in queues where queue.engine.isUnderused {
            fault("\(queue.name) has something to begin and no thread, while worker \(blocked ?? -1) is blocked")
        }
        return true
    }
}

// The end of the scenario.
extension SchedulerScenario {
    /// Lets every operation end.
    func settle() {
        for queue in queues { queue.capacity = nil }
        for member in members where !member.isAdded {
            member.isAdded = true
            member.isBarrier = false
            do { try queues[member.queue].add(member.operation) } catch {
                fault("\(member.number) was refused: \(error)")
            }
        }
        for queue in queues { queue.isSuspended = false }
        var progress = true
        while progress {
            progress = workers.step()
            for case let operation as HandDriven in members.map(\.operation) where operation.state == .executing {
                operation.finish(withResult: 0)
                progress = true
            }
            if !progress { progress = clock.advanceToNext() }
        }
        for member in members where !member.operation.isFinished {
            fault("\(member.number) was lost: \(member.operation.stateDescription)")
        }
        if workers.count > 0 { fault("\(workers.count) threads are left") }
        for queue in queues where !queue.engine.operations.isEmpty { fault("\(queue.name) is not empty") }
        for operation in strangers.operations where !operation.isFinished { fault("a stranger was lost") }
        let (begun, added) = (strangers.begun, strangers.added)
        if begun > added || begun < added && !strangers.mayBeDropped { fault("\(begun) of \(added) strangers ran") }
        let woken = wakes.value
        if woken != waits { fault("\(waits) waited and \(woken) woke") }
    }
}
