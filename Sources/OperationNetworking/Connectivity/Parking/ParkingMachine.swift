// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Those who wait for the network: a pure value, told the time, chance and whether the network is there.
///
/// They go on in the order in which they came, at a pace, once the network has been back for a while. Who has waited
/// too long without it goes, too, and is told so. That is counted on a clock that runs only while the network is gone:
/// the time for which it is there, and one only waits for one's turn, does not count.
package struct ParkingMachine {
    /// The name of one who waits; it is never used again.
    package typealias Ticket = UInt64

    package enum Action: Sendable, Equatable {
        /// It goes on.
        case release(Ticket)
        /// It has waited as long as it may.
        case giveUp(Ticket)
    }

    private struct Wait: Sendable {
        /// Under which name its limit is in the heap; nil if it has none.
        let limit: UInt64?
    }

    private let capacity: Int
    private let pace: ParkingPace
    private var waits: [Ticket: Wait] = [:]
    /// By the time without a network.
    private var heap = TimerHeap<Ticket>()
    /// In the order of their coming; those that have left are passed over.
    private var line = Fifo<Ticket>()
    private var lastTicket: Ticket = 0
    private var nextRelease: OperationInstant?
    /// How long the network was gone in all, before the present time without it.
    private var offlineBefore = OperationInstant(offset: .zero)
    /// Since when it is gone; nil while it is there.
    private var goneSince: OperationInstant?
    /// How often it went.
    package private(set) var outages = 1

    package init(
        capacity: Int = .max, pace: ParkingPace = .standard, isOffline: Bool = true, now: OperationInstant
    ) {
        self.capacity = capacity
        self.pace = pace
        goneSince = isOffline ? now : nil
    }

    /// How many wait.
    package var count: Int { waits.count }
    package var isOffline: Bool { goneSince != nil }
    /// How many places the line has, those included of some that have left; for tests.
    package var lineCount: Int { line.count }

    /// How long the network was gone until now, in all.
    package func offlineTime(at now: OperationInstant) -> OperationInstant {
        // A thread may bring a moment that it read before that of another.
        guard let goneSince, goneSince < now else { return offlineBefore }
        return offlineBefore.advanced(by: goneSince.duration(to: now))
    }

    /// When time matters next, unless something happens before; nil if it does not.
    package var nextDue: OperationInstant? {
        if waits.isEmpty { return nil }
        guard let goneSince else { return nextRelease }
        return heap.nextDue.map { goneSince.advanced(by: offlineBefore.duration(to: $0)) }
    }

    /// Somebody asks to wait; nil if there is no place.
    ///
    /// - Parameter limit: For how long it waits without a network; nil for as long as it takes.
    package mutating func park(atMost limit: Duration?, now: OperationInstant, chance: Double) -> Ticket? {
        guard waits.count < capacity else { return nil }
        lastTicket += 1
        let due = limit.map { offlineTime(at: now).advanced(by: $0) }
        waits[lastTicket] = Wait(limit: due.map { heap.insert(lastTicket, due: $0) })
        line.append(lastTicket)
        // The network may have returned between the look at it and now.
        if !isOffline, nextRelease == nil { nextRelease = now.advanced(by: pace.delay(chance)) }
        return lastTicket
    }

    /// Somebody waits no longer, for reasons of its own; false if it did not wait.
    package mutating func leave(_ ticket: Ticket) -> Bool {
        guard let wait = waits.removeValue(forKey: ticket) else { return false }
        if let limit = wait.limit { _ = heap.remove(limit) }
        trim()
        if waits.isEmpty { nextRelease = nil }
        return true
    }

    /// What has left must not pile up in the line.
    private mutating func trim() {
        if line.count > 2 * waits.count + 64 { _ = line.removeAll { waits[$0] == nil } }
    }

    /// The network went or returned.
    package mutating func connectivityChanged(isOffline: Bool, now: OperationInstant, chance: Double) {
        guard self.isOffline != isOffline else { return }
        offlineBefore = offlineTime(at: now)
        goneSince = isOffline ? now : nil
        if isOffline { outages += 1 }
        nextRelease = isOffline || waits.isEmpty ? nil : now.advanced(by: pace.delay(chance))
    }

    /// Time passed: who goes, in their order.
    package mutating func timePassed(now: OperationInstant, chance: Double) -> [Action] {
        guard isOffline else { return release(now, chance) }
        var actions: [Action] = []
        while let ticket = heap.popDue(at: offlineTime(at: now)) {
            waits[ticket] = nil
            actions.append(.giveUp(ticket))
        }
        if waits.isEmpty { line = Fifo() } else { trim() }
        return actions
    }

    private mutating func release(_ now: OperationInstant, _ chance: Double) -> [Action] {
        guard let due = nextRelease, due <= now else { return [] }
        var actions: [Action] = []
        while actions.count < pace.batch, let ticket = line.popFirst() {
            guard let wait = waits.removeValue(forKey: ticket) else { continue }
            if let limit = wait.limit { _ = heap.remove(limit) }
            actions.append(.release(ticket))
        }
        // One that comes late does not make the next ones come at once.
        nextRelease = waits.isEmpty ? nil : max(due, now).advanced(by: pace.step(chance))
        return actions
    }
}
