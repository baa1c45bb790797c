// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// The parties that hold and wait for categories, as a pure value.
///
/// A party requests all its categories in one step and gets all of them or none, so no party holds one category while
/// it waits for another.
///
/// A party that can begin as soon as it holds its categories waits in the line of each category. The party is served
/// when it is the first in each of its lines and each category has room. A party of a queue needs a slot of the queue,
/// too. That party holds nothing while it waits for the slot, because other parties may need the category before a slot
/// becomes free. Each queue has its own line in each category. When a category has room, the first party in each
/// queue's line is *called*. The first called party that comes with a slot is served, and the others wait to be called
/// again. Every queue's first party has to be called, because any of the queues may be full or suspended.
///
/// So parties that came later may be served earlier. A party that was *passed over* in this way too often is called
/// even if it cannot be served yet. When it comes with a slot, it keeps the slot for some time (`slotWaitLimit`) and
/// waits with it. Parties that can begin as soon as they are served are served in the order in which they arrived.
package struct CategoryMachine<Key: Hashable, Party: Hashable> {
    /// A category that a party asks for, and its limit.
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
        /// The waiting parties of no queue, which can begin as soon as they are served.
        var immediate = ArrivalLine<Party>()
        /// The waiting parties of each queue.
        var queued: [Queue: ArrivalLine<Party>] = [:]
        /// The few parties of queues that wait with a slot (see `slotWaitLimit`), the oldest first.
        var waitingWithSlot: [Party] = []
        /// The number of times that a party was served or left.
        var turns = 0

        var hasRoom: Bool { holders.count < limit }
    }

    private enum Status {
        case waiting, called, held
    }

    private struct Claim {
        /// The arrival number of the party, which is lowest for the oldest party.
        let number: Int
        let keys: [Key]
        let queue: Queue?
        var status = Status.waiting
        /// Whether the party can begin as soon as it is served.
        var isImmediate: Bool
        /// The number of times that a party that came later was served in one of its lines.
        var passes = 0
        /// The category because of which the party waited with a slot in vain, and the turns of its line at that time.
        ///
        /// Until the turns change, another wait would only keep the other categories from other parties.
        var obstacle: (key: Key, turns: Int)?
    }

    /// The number of times that a party may be passed over before it may wait with a slot.
    private static var mostPasses: Int { 8 }

    private var lines: [Key: Line] = [:]
    private var claims: [Party: Claim] = [:]
    private var called: [Party] = []
    private var arrivals = 0

    package init() {}

    /// Whether no party holds or waits for anything.
    package var isEmpty: Bool { lines.isEmpty && claims.isEmpty }

    /// The parties that hold a category, in the order in which they acquired it.
    package func holders(of key: Key) -> [Party] { lines[key]?.holders.all ?? [] }

    /// The parties that wait for a category, in the order in which they arrived.
    package func waiting(for key: Key) -> [Party] { lines[key]?.waiting.all ?? [] }

    package func waitingCount(for key: Key) -> Int { lines[key]?.waiting.count ?? 0 }

    /// Returns how long a party that was refused may keep its slot and wait, or `nil` if it must give up the slot.
    ///
    /// A party that was passed over too often may wait, longer each time. The wait has a limit, because the party that
    /// holds the category may need that slot. Each such wait takes a thread. So a party may not wait if an older one
    /// does so in one of its lines.
    package func slotWaitLimit(of party: Party) -> Duration? {
        guard let claim = claims[party], claim.passes > Self.mostPasses, !hasOlderWaitingWithSlot(claim) else {
            return nil
        }
        return .milliseconds(1 << min(claim.passes - Self.mostPasses, 14))
    }

    /// Removes and returns the parties that were called since the last time.
    package mutating func takeCalled() -> [Party] {
        called.isEmpty ? [] : exchange(&called, with: [])
    }

    /// Asks for categories, and returns whether the party now holds all of them.
    ///
    /// The demands must be different from each other. If the party is refused, it waits. A party of a queue is called
    /// when it may ask again. Any other party is served later.
    package mutating func ask(_ party: Party, for demands: [Demand], in queue: Queue? = nil) -> Bool {
        if claims[party] == nil {
            enter(party, demands, queue)
        } else if claims[party]?.status == .held || queue == nil {
            return claims[party]?.status == .held
        }
        claims[party]?.status = .waiting
        guard let keys = claims[party]?.keys, canHold(party) else {
            return false
        }
        hold(party)
        call(keys)
        return true
    }

    /// Puts a party of a queue that has no slot yet in line.
    package mutating func enqueue(_ party: Party, for demands: [Demand], in queue: Queue) {
        guard claims[party] == nil else { return }
        enter(party, demands, queue)
        call(demands.map(\.key))
        // Without demands there is nothing to wait for.
        if demands.isEmpty { called.append(party) }
    }

    /// Removes a party, and returns the parties that now hold their categories because of this.
    package mutating func leave(_ party: Party) -> [Party] {
        guard let claim = claims.removeValue(forKey: party) else { return [] }
        for key in claim.keys {
            lines[key]?.holders.remove(party)
            lines[key]?.turns += 1
            takeOut(party, claim, key)
        }
        return serve(claim.keys)
    }

    /// Lets a party of a queue keep its slot, and returns the parties that now hold their categories because of this.
    ///
    /// The party can then begin as soon as it is served.
    package mutating func promote(_ party: Party) -> [Party] {
        guard let claim = claims[party], claim.status != .held, !claim.isImmediate else { return [] }
        claims[party]?.isImmediate = true
        claims[party]?.status = .waiting
        for key in claim.keys {
            let older = lines[key]?.waitingWithSlot.prefix { claims[$0].map { $0.number < claim.number } ?? false }
            lines[key]?.waitingWithSlot.insert(party, at: older?.count ?? 0)
        }
        return serve(claim.keys)
    }

    /// Takes the slot from a party, and returns whether it holds its categories.
    ///
    /// The result also contains the parties that now hold their categories because of this.
    package mutating func demote(_ party: Party) -> (isHeld: Bool, served: [Party]) {
        guard let claim = claims[party], claim.queue != nil, claim.isImmediate, claim.status != .held else {
            return (claims[party]?.status == .held, [])
        }
        let obstacle = obstacle(of: claim)
        claims[party]?.isImmediate = false
        claims[party]?.obstacle = obstacle
        for key in claim.keys { lines[key]?.waitingWithSlot.removeAll { $0 == party } }
        return (false, serve(claim.keys))
    }

    private mutating func enter(_ party: Party, _ demands: [Demand], _ queue: Queue?) {
        arrivals += 1
        claims[party] = Claim(number: arrivals, keys: demands.map(\.key), queue: queue, isImmediate: queue == nil)
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
        guard let queue = claim.queue else {
            lines[key]?.immediate.remove(party)
            return
        }
        lines[key]?.waitingWithSlot.removeAll { $0 == party }
        lines[key]?.queued[queue]?.remove(party)
        if lines[key]?.queued[queue]?.isEmpty == true { lines[key]?.queued[queue] = nil }
    }

    private mutating func hold(_ party: Party) {
        guard let claim = claims[party] else { return }
        for key in claim.keys {
            takeOut(party, claim, key)
            lines[key]?.holders.append(party)
            lines[key]?.turns += 1
        }
        claims[party]?.status = .held
        countPasses(by: claim)
    }

    /// Notes that older parties were passed over because this one was served.
    ///
    /// The parties that were passed over are older, and the first of their queues in the same lines. The oldest one
    /// that was passed over too often is called, even if it cannot be served yet. If it cannot come because its queue
    /// is full, another one is called when the next party is served.
    private mutating func countPasses(by claim: Claim) {
        var heads: Set<Party> = []
        for key in claim.keys { heads.formUnion(lines[key]?.queued.values.compactMap(\.first) ?? []) }
        var oldest: (party: Party, number: Int)?
        for party in heads {
            guard let head = claims[party], isFirstOfQueue(party, head), !isObstructed(head) else { continue }
            if head.number < claim.number { claims[party]?.passes += 1 }
            guard (claims[party]?.passes ?? 0) > Self.mostPasses, head.status == .waiting, !head.isImmediate,
                head.number < oldest?.number ?? .max, !hasOlderWaitingWithSlot(head)
            else { continue }
            oldest = (party, head.number)
        }
        if let oldest { call(oldest.party) }
    }

    private func isFirstOfQueue(_ party: Party, _ claim: Claim) -> Bool {
        guard let queue = claim.queue else { return false }
        return claim.keys.allSatisfy { lines[$0]?.queued[queue]?.first == party }
    }

    private func hasOlderWaitingWithSlot(_ claim: Claim) -> Bool {
        claim.keys.contains { key in
            guard let first = lines[key]?.waitingWithSlot.first, let other = claims[first] else { return false }
            return other.number < claim.number
        }
    }

    private func isObstructed(_ claim: Claim) -> Bool {
        guard let (key, turns) = claim.obstacle else { return false }
        return lines[key]?.turns == turns
    }

    private func obstacle(of claim: Claim) -> (key: Key, turns: Int)? {
        let key =
            claim.keys.first { lines[$0]?.hasRoom == false }
            ?? claim.keys.first { key in
                guard let first = lines[key]?.immediate.first, let other = claims[first] else { return false }
                return other.number < claim.number
            }
        return key.flatMap { key in lines[key].map { (key, $0.turns) } }
    }

    /// Serves the first parties of these lines, and of other lines that move because of this.
    private mutating func serve(_ moved: [Key]) -> [Party] {
        var served: [Party] = []
        var moved = moved
        var position = 0
        while position < moved.count {
            let key = moved[position]
            position += 1
            while let party = lines[key].flatMap(firstImmediate), canHold(party), let keys = claims[party]?.keys {
                hold(party)
                served.append(party)
                // A category that several may hold may have room for the next party in its line, too.
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
            guard let line = lines[key], line.hasRoom, firstImmediate(line) == nil else { continue }
            for party in line.queued.values.compactMap(\.first)
            where claims[party]?.status == .waiting && canHold(party) {
                call(party)
            }
        }
    }

    private mutating func call(_ party: Party) {
        claims[party]?.status = .called
        called.append(party)
    }

    /// The oldest party of a line that can begin as soon as it is served.
    private func firstImmediate(_ line: Line) -> Party? {
        guard let party = line.immediate.first else { return line.waitingWithSlot.first }
        guard let waitingWithSlot = line.waitingWithSlot.first, let left = claims[waitingWithSlot],
            let right = claims[party]
        else { return party }
        return left.number < right.number ? waitingWithSlot : party
    }

    private func canHold(_ party: Party) -> Bool {
        guard let claim = claims[party] else { return false }
        return claim.keys.allSatisfy { key in
            guard let line = lines[key], line.hasRoom else { return false }
            if claim.isImmediate { return firstImmediate(line) == party }
            guard let queue = claim.queue else { return false }
            return firstImmediate(line) == nil && line.queued[queue]?.first == party
        }
    }
}

/// A line of distinct elements in order of arrival, from which any element can be removed in constant time.
package struct ArrivalLine<Element: Hashable> {
    /// The elements, with `nil` in place of those that were removed from the middle.
    private var elements: [Element?] = []
    private var head = 0
    private var positions: [Element: Int] = [:]

    package init() {}

    package var isEmpty: Bool { positions.isEmpty }
    package var count: Int { positions.count }
    package var first: Element? { isEmpty ? nil : elements[head] }
    package var all: [Element] { elements[head...].compactMap { $0 } }

    /// The number of stored positions, including gaps.
    package var extent: Int { elements.count }

    package mutating func append(_ element: Element) {
        guard positions[element] == nil else { return }
        positions[element] = elements.count
        elements.append(element)
    }

    /// Removes an element, and returns whether it was there.
    @discardableResult
    package mutating func remove(_ element: Element) -> Bool {
        guard let position = positions.removeValue(forKey: element) else { return false }
        elements[position] = nil
        while head < elements.count, elements[head] == nil { head += 1 }
        closeGaps()
        return true
    }

    package mutating func popFirst() -> Element? {
        guard let first else { return nil }
        remove(first)
        return first
    }

    /// Removes the gaps if they are the majority, so that the memory stays bounded.
    private mutating func closeGaps() {
        guard elements.count > 32, elements.count > 2 * positions.count else { return }
        elements = elements[head...].filter { $0 != nil }
        head = 0
        for (position, element) in elements.enumerated() {
            if let element { positions[element] = position }
        }
    }
}
