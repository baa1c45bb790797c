// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Which origins are left alone and until when, and who waits for that: a pure value, told the time.
///
/// For each origin somebody has to say when a time has come, as long as somebody waits there.
package struct OriginPauseMachine: Sendable {
    /// One that waits.
    package struct Ticket: Sendable, Hashable {
        let origin: RequestOrigin
        /// Which pause of the origin it was: each has a line of its own.
        let pause: UInt64
        let number: UInt64
    }

    private struct Pause: Sendable {
        let serial: UInt64
        var until: OperationInstant
        /// Until when those in the line were told that it lasts.
        var told: OperationInstant
        var line = TicketLine()
        /// When the next of the line may go; nil if no time is set for that.
        var nextRelease: OperationInstant?
    }

    /// By so much longer it lasts before those that wait are asked whether they still do.
    private static let worthTelling = Duration.seconds(1)

    private var pauses: [RequestOrigin: Pause] = [:]
    private var begun: UInt64 = 0
    private let pace: PostponementPace

    package init(pace: PostponementPace) {
        self.pace = pace
    }

    /// How many origins it knows.
    package var count: Int { pauses.count }

    /// How long an origin is still left alone; nil if it is not.
    ///
    /// - Parameters:
    ///   - origin: Which.
    ///   - hasWaited: Whether its turn has come for who asks. Others come after those who still wait for theirs.
    ///   - now: The time.
    package func left(
        for origin: RequestOrigin, hasWaited: Bool = false, now: OperationInstant
    ) -> Duration? {
        guard let pause = pauses[origin] else { return nil }
        if now < pause.until { return now.duration(to: pause.until) }
        guard !hasWaited, !pause.line.isEmpty, let next = pause.nextRelease else { return nil }
        return max(now.duration(to: next), .zero)
    }

    /// An origin asked for a pause; returns those that wait already, if that is longer than they were told: they ask again.
    package mutating func note(_ pause: Duration, for origin: RequestOrigin, now: OperationInstant) -> [Ticket] {
        // What is over, keeps nobody up and is not looked at any more is forgotten.
        pauses = pauses.filter { now < $0.value.until || $0.value.nextRelease != nil }
        let until = now.advanced(by: pause)
        guard pause > .zero, pauses[origin].map({ $0.until < until }) ?? true else { return [] }
        if pauses[origin] == nil { begun += 1 }
        var known = pauses[origin] ?? Pause(serial: begun, until: until, told: until)
        known.until = until
        // The time that is set finds that it is too early.
        if known.nextRelease != nil { known.nextRelease = until }
        let asksAgain = known.told.duration(to: until) > Self.worthTelling
        if asksAgain { known.told = until }
        let told = asksAgain ? known.line.takeAll() : []
        pauses[origin] = known
        return told.map { Ticket(origin: origin, pause: known.serial, number: $0) }
    }

    /// Somebody waits; nil if nothing is to be waited for.
    package mutating func wait(
        for origin: RequestOrigin, now: OperationInstant
    ) -> (ticket: Ticket?, due: OperationInstant?) {
        // While the line is let go one after the other, whoever comes now comes after it.
        guard var pause = pauses[origin], now < pause.until || !pause.line.isEmpty else { return (nil, nil) }
        let ticket = Ticket(origin: origin, pause: pause.serial, number: pause.line.append())
        let isFirst = pause.nextRelease == nil
        if isFirst { pause.nextRelease = pause.until }
        pauses[origin] = pause
        return (ticket, isFirst ? pause.until : nil)
    }

    /// It waits no longer.
    package mutating func leave(_ ticket: Ticket) {
        guard pauses[ticket.origin]?.serial == ticket.pause else { return }
        pauses[ticket.origin]?.line.remove(ticket.number)
    }

    /// A time has come: who goes, and when the next one comes.
    package mutating func passTime(
        for origin: RequestOrigin, now: OperationInstant
    ) -> (released: [Ticket], due: OperationInstant?) {
        guard var pause = pauses[origin], let due = pause.nextRelease else { return ([], nil) }
        guard due <= now else { return ([], due) }
        let released = pause.line.take(pace.count).map { Ticket(origin: origin, pause: pause.serial, number: $0) }
        pause.nextRelease = pause.line.isEmpty ? nil : now.advanced(by: pace.interval)
        pauses[origin] = pause
        if pause.line.isEmpty, pause.until <= now { pauses[origin] = nil }
        return (released, pause.nextRelease)
    }
}
