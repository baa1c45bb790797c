// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A table that decides which transfers may run, with limits for each host, for all hosts and for name lookups.
///
/// The transfers of one host run in the order of their priority and arrival (``SlotLine``), and the hosts take turns.
/// The cost of each step does not depend on the number of waiting transfers.
package struct SlotTable<Ticket> {
    /// A position in a queue, which is needed to leave the queue.
    package struct Place: Hashable, Sendable {
        fileprivate let host: Int
        fileprivate let number: UInt64
        fileprivate let isAhead: Bool
    }

    /// The permission to run one transfer, which must be released when the transfer ends.
    package struct Slot: Sendable {
        /// The index of the host.
        package let host: Int
        /// Whether the slot was granted beyond the limits.
        package let isAhead: Bool

        package init(host: Int, isAhead: Bool) {
            self.host = host
            self.isAhead = isAhead
        }
    }

    package struct Grant {
        package let slot: Slot
        package let ticket: Ticket
        /// Whether the transfer looks up the name of its host, in which case it owns the lookup until it is released.
        package let looksUp: Bool
    }

    private struct Host {
        let name: String
        let isNumeric: Bool
        var active = 0
        /// The number of transfers that go ahead of all others and are not released.
        var ahead = 0
        var limit: Int
        var isResolved: Bool
        var isLookingUp = false
        var isInRing = false
        var line = SlotLine()
        var tickets: [UInt64: Ticket] = [:]

        /// Joins the hosts that take turns, and returns `false` if the host already did so or has no tickets.
        mutating func joinRing() -> Bool {
            guard !isInRing, !tickets.isEmpty else { return false }
            isInRing = true
            return true
        }

        /// Whether the next transfer must look up the name.
        ///
        /// Only one transfer looks up a host. The others use the result that libcurl keeps.
        var needsLookup: Bool { active < limit && !isResolved && !isLookingUp }

        /// Takes the host's turn, and returns a ticket if a transfer may run.
        mutating func takeTurn() -> (ticket: Ticket, looksUp: Bool)? {
            isInRing = false
            guard active < limit, isResolved || !isLookingUp else { return nil }
            while let number = line.popFirst() {
                guard let ticket = tickets.removeValue(forKey: number) else { continue }
                active += 1
                if !isResolved { isLookingUp = true }
                return (ticket, !isResolved)
            }
            return nil
        }
    }

    /// The number of idle hosts that are remembered.
    private static var idleHosts: Int { 256 }
    /// The maximum number of transfers of one host that can go ahead of all others.
    private static var mostAhead: Int { 2 }

    private let limits: (perHost: Int, total: Int, lookups: Int)
    private var hosts: [Host?] = []
    private var freeIndices: [Int] = []
    private var indices: [String: Int] = [:]
    /// Hosts with tickets that may have a free slot, in the order of their turns.
    private var ring = Fifo<Int>()
    /// The positions of the transfers that go ahead of all others.
    private var ahead = Fifo<Place>()
    private var awaitingLookup: [Int] = []
    package private(set) var activeCount = 0
    private var lookups = 0
    private var lastNumber: UInt64 = 0

    /// Creates a table with the numbers of slots of each host, of all slots and of concurrent name lookups.
    package init(perHost: Int, total: Int, lookups: Int) {
        limits = (perHost, total, lookups)
    }

    /// The number of remembered hosts.
    package var hostCount: Int { indices.count }

    /// Adds a ticket to the queue of its host, behind all tickets of its priority.
    ///
    /// A ticket that is ahead gets a slot beyond all limits. If two tickets of its host are already ahead, the ticket
    /// is treated like any other.
    package mutating func enter(
        _ ticket: Ticket, host name: String, isNumeric: Bool, priority: TransferPriority = .normal,
        isAhead: Bool = false
    ) -> Place {
        let index = indices[name] ?? add(name, isNumeric)
        lastNumber += 1
        let isAhead = isAhead && hosts[index].map { $0.ahead < Self.mostAhead } ?? false
        let place = Place(host: index, number: lastNumber, isAhead: isAhead)
        if isAhead {
            ahead.append(place)
            hosts[index]?.ahead += 1
        } else {
            hosts[index]?.line.append(lastNumber, priority)
        }
        hosts[index]?.tickets[lastNumber] = ticket
        offer(index)
        return place
    }

    private mutating func add(_ name: String, _ isNumeric: Bool) -> Int {
        let host = Host(name: name, isNumeric: isNumeric, limit: limits.perHost, isResolved: isNumeric)
        if let index = freeIndices.popLast() {
            hosts[index] = host
            indices[name] = index
            return index
        }
        hosts.append(host)
        indices[name] = hosts.count - 1
        return hosts.count - 1
    }

    /// Leaves the queue and returns the ticket, or returns `nil` if the ticket is no longer in the queue.
    package mutating func leave(_ place: Place) -> Ticket? {
        let ticket = hosts[place.host]?.tickets.removeValue(forKey: place.number)
        if ticket != nil, place.isAhead { hosts[place.host]?.ahead -= 1 }
        if indices.count > Self.idleHosts { forgetIfIdle(place.host) }
        return ticket
    }

    /// Returns the next transfer that may run, or `nil` if there is none.
    package mutating func next() -> Grant? {
        while let place = ahead.popFirst() {
            // The ticket may have left, and its host may have been removed since.
            guard let ticket = hosts[place.host]?.tickets.removeValue(forKey: place.number) else { continue }
            let looksUp = hosts[place.host].map { !$0.isResolved && !$0.isLookingUp } ?? false
            if looksUp { lookups += 1 }
            if looksUp { hosts[place.host]?.isLookingUp = true }
            hosts[place.host]?.active += 1
            activeCount += 1
            return Grant(slot: Slot(host: place.host, isAhead: true), ticket: ticket, looksUp: looksUp)
        }
        while activeCount < limits.total, let index = ring.popFirst() {
            if lookups >= limits.lookups, hosts[index]?.needsLookup == true {
                hosts[index]?.isInRing = false
                awaitingLookup.append(index)
            } else if let (ticket, looksUp) = hosts[index]?.takeTurn() {
                if looksUp { lookups += 1 }
                activeCount += 1
                offer(index)
                return Grant(slot: Slot(host: index, isAhead: false), ticket: ticket, looksUp: looksUp)
            }
            if indices.count > Self.idleHosts { forgetIfIdle(index) }
        }
        return nil
    }

    /// Releases the slot of a transfer.
    ///
    /// - Parameters:
    ///   - slot: The slot that the table granted.
    ///   - endsLookup: Whether a lookup of the name, if there is one, belongs to the transfer.
    package mutating func release(_ slot: Slot, endsLookup: Bool = true) {
        let index = slot.host
        hosts[index]?.active -= 1
        if slot.isAhead { hosts[index]?.ahead -= 1 }
        activeCount -= 1
        if endsLookup { lookupEnded(index) }
        offer(index)
        if indices.count > Self.idleHosts { forgetIfIdle(index) }
    }

    /// Records that the name of a host was looked up, or needs no lookup.
    package mutating func resolved(_ index: Int) {
        guard hosts[index]?.isResolved == false else { return }
        hosts[index]?.isResolved = true
        lookupEnded(index)
        offer(index)
    }

    private mutating func lookupEnded(_ index: Int) {
        guard hosts[index]?.isLookingUp == true else { return }
        hosts[index]?.isLookingUp = false
        lookups -= 1
        let waiting = awaitingLookup
        awaitingLookup = []
        for other in waiting { offer(other) }
    }

    /// Records that the lookups are too old to be relied on.
    package mutating func forgetNames() {
        for index in hosts.indices where hosts[index]?.isNumeric == false { hosts[index]?.isResolved = false }
    }

    /// Sets the maximum number of concurrent transfers of a host.
    package mutating func setLimit(_ limit: Int, host index: Int) {
        guard hosts[index]?.limit != limit else { return }
        hosts[index]?.limit = limit
        offer(index)
    }

    private mutating func offer(_ index: Int) {
        if hosts[index]?.joinRing() == true { ring.append(index) }
    }

    private mutating func forgetIfIdle(_ index: Int) {
        guard let host = hosts[index], host.active == 0, host.tickets.isEmpty, !host.isInRing else { return }
        indices[host.name] = nil
        hosts[index] = nil
        freeIndices.append(index)
    }
}

/// The queue of one host, in the order of priority and then of arrival.
///
/// So that no ticket waits forever, the oldest one is next after several others have passed it. The cost of each step
/// does not depend on the number of waiting tickets.
struct SlotLine {
    /// The number of tickets that may pass an older one.
    private static var maximumPasses: Int { 7 }

    /// The queues by priority, the highest first.
    private var lines = [Fifo<UInt64>](repeating: Fifo(), count: TransferPriority.count)
    private var passed = 0

    mutating func append(_ number: UInt64, _ priority: TransferPriority) {
        lines[TransferPriority.count - 1 - priority.rank].append(number)
    }

    /// Removes and returns the next ticket.
    mutating func popFirst() -> UInt64? {
        guard let first = lines.firstIndex(where: { !$0.isEmpty }) else { return nil }
        var oldest = first
        for index in lines.indices.dropFirst(first + 1) {
            guard let number = lines[index].first, let known = lines[oldest].first, number < known else { continue }
            oldest = index
        }
        if oldest == first || passed >= Self.maximumPasses {
            passed = 0
            return lines[oldest].popFirst()
        }
        passed += 1
        return lines[first].popFirst()
    }
}

/// A pool of reusable elements, each of which has a small number.
package struct NumberedPool<Element> {
    private var elements: [Element?] = []
    private var free: [Int] = []

    package init() {}

    /// The number of elements in use.
    package var usedCount: Int { elements.count - free.count }

    /// Whether the pool has no elements at all, in use or not.
    package var isEmpty: Bool { elements.isEmpty }

    package subscript(number: Int) -> Element? { number < elements.count ? elements[number] : nil }

    /// Returns whether the pool has an element that meets a condition, in use or not.
    package func contains(where isWanted: (Element) -> Bool) -> Bool {
        elements.contains { $0.map(isWanted) ?? false }
    }

    /// Calls a closure with each element, in use or not.
    package func forEach(_ body: (Element) -> Void) {
        for element in elements { element.map(body) }
    }

    /// Returns a free element or a new one, or `nil` if no element can be created.
    package mutating func take(orMake make: (Int) -> Element?) -> Element? {
        let number = free.popLast() ?? elements.count
        if number == elements.count { elements.append(nil) }
        if let element = elements[number] { return element }
        elements[number] = make(number)
        if elements[number] == nil { free.append(number) }
        return elements[number]
    }

    /// Returns an element to the pool, which keeps either the element or only its number for reuse.
    package mutating func putBack(_ number: Int, isKept: Bool) {
        if !isKept { elements[number] = nil }
        free.append(number)
    }

    package mutating func removeAll() { self = NumberedPool() }
}
