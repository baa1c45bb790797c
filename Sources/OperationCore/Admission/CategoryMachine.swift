// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Who holds which categories and who waits for them, as a pure value.
///
/// A party asks for all its categories in one step and gets all of them or none, so no party holds one category while
/// it waits for another.
///
/// A party that can begin as soon as it holds its categories waits in the line of each category. It is served when it
/// is the first in each of its lines and each category has room. A party of a queue needs a slot of the queue, too. It
/// holds nothing while it waits for the slot, because other parties may need the category before a slot becomes free.
/// Each queue has its own line in each category. When a category has room, the first party in each queue's line is
/// *called*. The first called party that comes with a slot is served, and the others wait to be called again.
package struct CategoryMachine<Key: Hashable, Party: Hashable> {
    /// One category that a party asks for, and how many may hold it.
    package struct Demand {
        let key: Key
        let limit: Int

        package init(_ key: Key, limit: Int) {
            self.key = key
            self.limit = max(limit, 1)
        }
    }

    /// The identity of a queue.
    package typealias Queue = ObjectIdentifier

    private struct Line {
        let limit: Int
        var holders = ArrivalLine<Party>()
        /// All waiting parties.
        var waiting = ArrivalLine<Party>()
        /// The waiting parties that can begin as soon as they are served.
        var immediate = ArrivalLine<Party>()
        /// The waiting parties of each queue.
        var queued: [Queue: ArrivalLine<Party>] = [:]

        var hasRoom: Bool { holders.count < limit }
    }

    private enum Standing {
        case waiting, called, held
    }

    private struct Claim {
        let keys: [Key]
        let queue: Queue?
        var standing = Standing.waiting
        /// Whether the party can begin as soon as it is served.
        var isImmediate: Bool
        /// How often the party came with a slot in hand and was refused, because others had been faster.
        var refusals = 0
    }

    private var lines: [Key: Line] = [:]
    private var claims: [Party: Claim] = [:]
    private var called: [Party] = []

    package init() {}

    /// Whether nobody holds or waits for anything.
    package var isEmpty: Bool { lines.isEmpty && claims.isEmpty }

    /// Those that hold a category, the one that got it first at the front.
    package func holders(of key: Key) -> [Party] { lines[key]?.holders.all ?? [] }

    /// The parties that wait for a category, in the order in which they came.
    package func waiting(for key: Key) -> [Party] { lines[key]?.waiting.all ?? [] }

    package func waitingCount(for key: Key) -> Int { lines[key]?.waiting.count ?? 0 }

    /// How often a party with a slot was refused.
    package func refusals(of party: Party) -> Int { claims[party]?.refusals ?? 0 }

    /// Removes and returns the parties that were called since the last time.
    package mutating func takeCalled() -> [Party] {
        called.isEmpty ? [] : exchange(&called, with: [])
    }

    /// Asks for categories, of which there is none twice; returns whether the party holds all of them now.
    ///
    /// If not, the party waits. A party of a queue is called when it may ask again. Any other party is served later.
    package mutating func ask(_ party: Party, for demands: [Demand], in queue: Queue? = nil) -> Bool {
        if claims[party] == nil {
            enter(party, demands, queue)
        } else if claims[party]?.standing == .held || queue == nil {
            return claims[party]?.standing == .held
        }
        claims[party]?.standing = .waiting
        guard let keys = claims[party]?.keys, canHold(party) else {
            claims[party]?.refusals += 1
            return false
        }
        hold(party)
        call(keys)
        return true
    }

    /// Puts a party of a queue that has no slot yet in line.
    package mutating func lineUp(_ party: Party, for demands: [Demand], in queue: Queue) {
        guard claims[party] == nil else { return }
        enter(party, demands, queue)
        call(demands.map(\.key))
        // Without demands there is nothing to wait for.
        if demands.isEmpty { called.append(party) }
    }

    /// The party gives back what it holds, or waits no more; returns those that hold theirs because of it.
    package mutating func leave(_ party: Party) -> [Party] {
        guard let claim = claims.removeValue(forKey: party) else { return [] }
        for key in claim.keys {
            lines[key]?.holders.remove(party)
            takeOut(party, claim, key)
        }
        return serve(claim.keys)
    }

    /// Lets a party of a queue keep its slot, so that it can begin as soon as it is served; returns the parties that
    /// hold their categories because of this.
    package mutating func promote(_ party: Party) -> [Party] {
        guard let claim = claims[party], claim.standing != .held, !claim.isImmediate else { return [] }
        claims[party]?.isImmediate = true
        claims[party]?.standing = .waiting
        for key in claim.keys { lines[key]?.immediate.append(party) }
        return serve(claim.keys)
    }

    /// Takes the slot from a party; returns whether it holds its categories, and the parties that hold theirs because
    /// of this.
    package mutating func demote(_ party: Party) -> (isHeld: Bool, served: [Party]) {
        guard let claim = claims[party], claim.queue != nil, claim.isImmediate, claim.standing != .held else {
            return (claims[party]?.standing == .held, [])
        }
        claims[party]?.isImmediate = false
        for key in claim.keys { lines[key]?.immediate.remove(party) }
        return (false, serve(claim.keys))
    }

    private mutating func enter(_ party: Party, _ demands: [Demand], _ queue: Queue?) {
        claims[party] = Claim(keys: demands.map(\.key), queue: queue, isImmediate: queue == nil)
        for demand in demands {
            if lines[demand.key] == nil { lines[demand.key] = Line(limit: demand.limit) }
            lines[demand.key]?.waiting.append(party)
            if let queue {
                lines[demand.key]?.queued[queue, default: ArrivalLine()].append(party)
            } else {
                lines[demand.key]?.immediate.append(party)
            }
        }
    }

    private mutating func takeOut(_ party: Party, _ claim: Claim, _ key: Key) {
        lines[key]?.waiting.remove(party)
        lines[key]?.immediate.remove(party)
        guard let queue = claim.queue else { return }
        lines[key]?.queued[queue]?.remove(party)
        if lines[key]?.queued[queue]?.isEmpty == true { lines[key]?.queued[queue] = nil }
    }

    private mutating func hold(_ party: Party) {
        guard let claim = claims[party] else { return }
        for key in claim.keys {
            takeOut(party, claim, key)
            lines[key]?.holders.append(party)
        }
        claims[party]?.standing = .held
    }

    /// Serves the first ones of these lines, and of the lines that move because of that, while that is possible.
    private mutating func serve(_ moved: [Key]) -> [Party] {
        var served: [Party] = []
        var moved = moved
        var position = 0
        while position < moved.count {
            let key = moved[position]
            position += 1
            while let party = lines[key]?.immediate.first, canHold(party), let keys = claims[party]?.keys {
                hold(party)
                served.append(party)
                // Where several may hold one, the next in the other lines may have its turn too.
                moved += keys.filter { $0 != key }
            }
        }
        call(moved)
        for key in moved {
            if let line = lines[key], line.holders.isEmpty, line.waiting.isEmpty { lines[key] = nil }
        }
        return served
    }

    /// Calls the first party of each queue in these lines, if it may be served.
    private mutating func call(_ keys: [Key]) {
        for key in keys {
            guard lines[key]?.hasRoom == true, let queued = lines[key]?.queued, !queued.isEmpty else { continue }
            for party in queued.values.compactMap(\.first) where claims[party]?.standing == .waiting && canHold(party) {
                claims[party]?.standing = .called
                called.append(party)
            }
        }
    }

    private func canHold(_ party: Party) -> Bool {
        guard let claim = claims[party] else { return false }
        return claim.keys.allSatisfy { key in
            guard let line = lines[key], line.hasRoom else { return false }
            if claim.isImmediate { return line.immediate.first == party }
            guard let queue = claim.queue else { return false }
            return line.immediate.isEmpty && line.queued[queue]?.first == party
        }
    }
}
