// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Who may transfer now: so many for each host, so many in all, and so many name look-ups at a time.
///
/// Those of one host come in the order of their priority and arrival (``SlotLine``); hosts take turns. Each step costs the same however many wait.
package struct SlotTable<Ticket> {
    package struct Limits: Sendable {
        package var perHost: Int
        package var total: Int
        package var lookups: Int

        package init(perHost: Int, total: Int, lookups: Int) {
            self.perHost = perHost
            self.total = total
            self.lookups = lookups
        }
    }

    /// A place in a line, by which it can be left.
    package struct Place: Hashable, Sendable {
        fileprivate let host: Int
        fileprivate let number: UInt64
        fileprivate let isAhead: Bool
    }

    package struct Grant {
        package let host: Int
        package let ticket: Ticket
        /// Whether the name of the host is to be looked up for it: the look-up is its own until it is released.
        package let looksUp: Bool
        /// Whether it is beyond the limits; to be said again when it is released.
        package let isAhead: Bool
    }

    private struct Host {
        let name: String
        let isNumeric: Bool
        var active = 0
        /// Those that wait for nobody, until they are released.
        var ahead = 0
        var limit: Int
        var isResolved: Bool
        var isLookingUp = false
        var isInRing = false
        var line = SlotLine()
        var tickets: [UInt64: Ticket] = [:]

        mutating func popTicket() -> Ticket? {
            while let number = line.popFirst() {
                if let ticket = tickets.removeValue(forKey: number) { return ticket }
            }
            return nil
        }
    }

    /// Hosts that are remembered although nothing is going on.
    private static var idleHosts: Int { 256 }
    /// How many of a host are ahead of all others at a time.
    private static var mostAhead: Int { 2 }

    private let limits: Limits
    private var hosts: [Host?] = []
    private var freeIndices: [Int] = []
    private var indices: [String: Int] = [:]
    /// Hosts with tickets that may have a free slot, in the order of their turns.
    private var ring = Fifo<Int>()
    /// Those that wait for nobody, by their hosts and numbers.
    private var ahead = Fifo<Place>()
    private var awaitingLookup: [Int] = []
    private var active = 0
    private var lookups = 0
    private var lastNumber: UInt64 = 0

    package init(_ limits: Limits) {
        self.limits = limits
    }

    package var activeCount: Int { active }

    /// How many hosts are remembered.
    package var hostCount: Int { indices.count }

    /// Puts a ticket into the line of its host, behind all of its priority.
    ///
    /// One that is ahead gets a slot beyond all limits, unless two of its host have one: others are like all others.
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

    /// Leaves the line; what stood there is returned, if it still did.
    package mutating func leave(_ place: Place) -> Ticket? {
        let ticket = hosts[place.host]?.tickets.removeValue(forKey: place.number)
        if ticket != nil, place.isAhead { hosts[place.host]?.ahead -= 1 }
        if indices.count > Self.idleHosts { forgetIfIdle(place.host) }
        return ticket
    }

    /// The next that may transfer.
    package mutating func next() -> Grant? {
        while let place = ahead.popFirst() {
            // It may have left, and its host have been forgotten since.
            guard let ticket = hosts[place.host]?.tickets.removeValue(forKey: place.number) else { continue }
            let looksUp = hosts[place.host].map { !$0.isResolved && !$0.isLookingUp } ?? false
            if looksUp { lookups += 1 }
            if looksUp { hosts[place.host]?.isLookingUp = true }
            hosts[place.host]?.active += 1
            active += 1
            return Grant(host: place.host, ticket: ticket, looksUp: looksUp, isAhead: true)
        }
        while active < limits.total, let index = ring.popFirst() {
            guard var host = hosts[index] else { continue }
            hosts[index] = nil
            defer {
                hosts[index] = host
                if indices.count > Self.idleHosts { forgetIfIdle(index) }
            }
            host.isInRing = false
            guard host.active < host.limit else { continue }
            if !host.isResolved {
                // One look-up for a host at a time: the others find its answer in libcurl's memory.
                guard !host.isLookingUp else { continue }
                guard lookups < limits.lookups else {
                    awaitingLookup.append(index)
                    continue
                }
            }
            guard let ticket = host.popTicket() else { continue }
            let looksUp = !host.isResolved
            if looksUp {
                host.isLookingUp = true
                lookups += 1
            }
            host.active += 1
            active += 1
            if !host.tickets.isEmpty {
                host.isInRing = true
                ring.append(index)
            }
            return Grant(host: index, ticket: ticket, looksUp: looksUp, isAhead: false)
        }
        return nil
    }

    /// A transfer is over.
    ///
    /// - Parameters:
    ///   - index: Its host.
    ///   - endsLookup: Whether the look-up of the name, if there is one, was its own.
    ///   - isAhead: Whether it was beyond the limits.
    package mutating func release(_ index: Int, endsLookup: Bool = true, isAhead: Bool = false) {
        hosts[index]?.active -= 1
        if isAhead { hosts[index]?.ahead -= 1 }
        active -= 1
        if endsLookup { lookupEnded(index) }
        offer(index)
        if indices.count > Self.idleHosts { forgetIfIdle(index) }
    }

    /// The name of the host was looked up, or need not be.
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

    /// What was looked up is too old to be relied upon.
    package mutating func forgetNames() {
        for index in hosts.indices where hosts[index]?.isNumeric == false { hosts[index]?.isResolved = false }
    }

    /// The host can carry so many at a time.
    package mutating func setLimit(_ limit: Int, host index: Int) {
        guard hosts[index]?.limit != limit else { return }
        hosts[index]?.limit = limit
        offer(index)
    }

    private mutating func offer(_ index: Int) {
        guard let host = hosts[index], !host.isInRing, !host.tickets.isEmpty else { return }
        hosts[index]?.isInRing = true
        ring.append(index)
    }

    private mutating func forgetIfIdle(_ index: Int) {
        guard let host = hosts[index], host.active == 0, host.tickets.isEmpty, !host.isInRing else { return }
        indices[host.name] = nil
        hosts[index] = nil
        freeIndices.append(index)
    }

    /// Everybody who waits, in no order; the lines are empty then.
    package mutating func removeAll() -> [Ticket] {
        var all: [Ticket] = []
        while let place = ahead.popFirst() {
            if hosts[place.host]?.tickets[place.number] != nil { hosts[place.host]?.ahead -= 1 }
        }
        for index in hosts.indices {
            all += hosts[index].map { Array($0.tickets.values) } ?? []
            hosts[index]?.tickets = [:]
        }
        return all
    }
}

/// The line before one host: those of a higher priority first, and those of one priority in the order of their arrival.
///
/// So that nobody stands in it for ever, it is the turn of who came first of all when several have passed him by. Each
/// step costs the same however many wait.
struct SlotLine {
    /// How many may pass somebody by who came before them.
    private static var patience: Int { 7 }

    /// The highest priority first.
    private var lines = [Fifo<UInt64>](repeating: Fifo(), count: TransferPriority.count)
    private var passed = 0

    mutating func append(_ number: UInt64, _ priority: TransferPriority) {
        lines[TransferPriority.count - 1 - priority.rank].append(number)
    }

    /// The next, who leaves the line.
    mutating func popFirst() -> UInt64? {
        guard let first = lines.firstIndex(where: { !$0.isEmpty }) else { return nil }
        var oldest = first
        for index in lines.indices.dropFirst(first + 1) {
            guard let number = lines[index].first, let known = lines[oldest].first, number < known else { continue }
            oldest = index
        }
        if oldest == first || passed >= Self.patience {
            passed = 0
            return lines[oldest].popFirst()
        }
        passed += 1
        return lines[first].popFirst()
    }
}

/// Things that are used again and again, each known by a small number.
package struct NumberedPool<Element> {
    private var elements: [Element?] = []
    private var free: [Int] = []

    package init() {}

    /// How many are in use.
    package var usedCount: Int { elements.count - free.count }

    /// Whether there are none at all, not even some to be used again.
    package var isEmpty: Bool { elements.isEmpty }

    package subscript(number: Int) -> Element? { number < elements.count ? elements[number] : nil }

    /// Whether there is such a one, in use or not.
    package func contains(where isWanted: (Element) -> Bool) -> Bool {
        elements.contains { $0.map(isWanted) ?? false }
    }

    /// Calls a closure with each element, in use or not.
    package func forEach(_ body: (Element) -> Void) {
        for element in elements { element.map(body) }
    }

    /// One that is free, or a new one if there is none; nil if it cannot be made.
    package mutating func take(orMake make: (Int) -> Element?) -> Element? {
        let number = free.popLast() ?? elements.count
        if number == elements.count { elements.append(nil) }
        if let element = elements[number] { return element }
        elements[number] = make(number)
        if elements[number] == nil { free.append(number) }
        return elements[number]
    }

    /// Nobody uses it any more; it is used again if it is kept, or else only its number.
    package mutating func putBack(_ number: Int, isKept: Bool) {
        if !isKept { elements[number] = nil }
        free.append(number)
    }

    package mutating func removeAll() { self = NumberedPool() }
}

/// What the thread of a session puts off for as long as it has something else to do: to wake another thread.
///
/// A session that is busy ends one task after another. Whoever has to do with each of them on a thread of its own is then
/// woken once for several, and not for each.
///
/// Not Sendable on purpose: each such thread has one of its own.
package final class SessionTurn {
    private struct Debt {
        let creditor: ObjectIdentifier
        let work: () -> Void
    }

    /// How long it may be put off, in nanoseconds, whatever else there is to do.
    private static let patience: Int64 = 100_000

    private var debts: [Debt] = []
    /// When the oldest of them must be done.
    private var due: Int64 = 0
    private let now: () -> Int64

    /// Makes it that of the calling thread, which alone may use it, and let go of it.
    ///
    /// - Parameter now: Nanoseconds of a clock.
    package init(now: @escaping () -> Int64) {
        self.now = now
        pthread_setspecific(Self.key, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit { pthread_setspecific(Self.key, nil) }

    /// That of the calling thread; nil if it is not one of a session.
    package static var current: SessionTurn? {
        pthread_getspecific(key).map { Unmanaged<SessionTurn>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Whether something was put off.
    package var isOwing: Bool { !debts.isEmpty }

    /// Does it when the thread has nothing else to do, unless something of the same creditor's will be done then anyway.
    ///
    /// - Parameters:
    ///   - creditor: Whose work it is; the work keeps it alive.
    ///   - work: What is put off.
    package func putOff(for creditor: AnyObject, _ work: @escaping () -> Void) {
        let creditor = ObjectIdentifier(creditor)
        guard !debts.contains(where: { $0.creditor == creditor }) else { return }
        if debts.isEmpty { due = now() + Self.patience }
        debts.append(Debt(creditor: creditor, work: work))
    }

    /// Does what was put off for too long.
    package func settleIfDue() {
        if isOwing, now() >= due { settle() }
    }

    /// Does what was put off.
    package func settle() {
        for debt in exchange(&debts, with: []) { debt.work() }
    }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()
}
