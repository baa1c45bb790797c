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
        let number: UInt64
    }

    private struct Pause: Sendable {
        var until: OperationInstant
        var line = TicketLine()
        /// When the next of the line may go; nil if no time is set for that.
        var nextRelease: OperationInstant?
    }

    private var pauses: [RequestOrigin: Pause] = [:]
    private let pace: PostponementPace

    package init(pace: PostponementPace) {
        self.pace = pace
    }

    /// How many origins it knows.
    package var count: Int { pauses.count }

    /// How long an origin is still left alone; nil if it is not.
    package func left(for origin: RequestOrigin, now: OperationInstant) -> Duration? {
        guard let until = pauses[origin]?.until, now < until else { return nil }
        return now.duration(to: until)
    }

    /// An origin asked for a pause; returns those that wait already, if that is longer than they were told: they ask again.
    package mutating func note(_ pause: Duration, for origin: RequestOrigin, now: OperationInstant) -> [Ticket] {
        // What is over and keeps nobody up is forgotten.
        pauses = pauses.filter { now < $0.value.until || !$0.value.line.isEmpty }
        let until = now.advanced(by: pause)
        guard pause > .zero, pauses[origin].map({ $0.until < until }) ?? true else { return [] }
        var known = pauses[origin] ?? Pause(until: until)
        known.until = until
        // The time that is set finds that it is too early.
        if known.nextRelease != nil { known.nextRelease = until }
        let told = known.line.takeAll()
        pauses[origin] = known
        return told.map { Ticket(origin: origin, number: $0) }
    }

    /// Somebody waits; nil if nothing is to be waited for.
    package mutating func wait(
        for origin: RequestOrigin, now: OperationInstant
    ) -> (ticket: Ticket?, due: OperationInstant?) {
        guard var pause = pauses[origin], now < pause.until else { return (nil, nil) }
        let ticket = Ticket(origin: origin, number: pause.line.append())
        let isFirst = pause.nextRelease == nil
        if isFirst { pause.nextRelease = pause.until }
        pauses[origin] = pause
        return (ticket, isFirst ? pause.until : nil)
    }

    /// It waits no longer.
    package mutating func leave(_ ticket: Ticket) { pauses[ticket.origin]?.line.remove(ticket.number) }

    /// A time has come: who goes, and when the next one comes.
    package mutating func passTime(
        for origin: RequestOrigin, now: OperationInstant
    ) -> (released: [Ticket], due: OperationInstant?) {
        guard var pause = pauses[origin], let due = pause.nextRelease else { return ([], nil) }
        guard due <= now else { return ([], due) }
        let released = pause.line.take(pace.count).map { Ticket(origin: origin, number: $0) }
        pause.nextRelease = pause.line.isEmpty ? nil : now.advanced(by: pace.interval)
        pauses[origin] = pause
        if pause.line.isEmpty, pause.until <= now { pauses[origin] = nil }
        return (released, pause.nextRelease)
    }
}
