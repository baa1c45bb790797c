// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct TransferDeadlinesTests {
    private func deadlines(total: Duration? = nil) -> TransferDeadlines {
        TransferDeadlines(
            TransferTimeouts(
                connect: .nanoseconds(10), firstByte: .nanoseconds(20), idle: .nanoseconds(30), total: total),
            now: 1000)
    }

    /// Deadlines that follow a pause clock.
    private struct Braked {
        var limits: TransferDeadlines
        var pauses = PauseClock()

        mutating func pause(at now: Int64) {
            pauses.set(true, at: now)
            limits.follow(pauses)
        }

        mutating func resume(at now: Int64) {
            pauses.set(false, at: now)
            limits.follow(pauses)
        }
    }

    @Test func `each phase has its own limit`() {
        var limits = deadlines()
        limits.connecting(at: 1000)
        #expect(limits.next == 1010 && limits.exceeded(at: 1009) == nil && limits.exceeded(at: 1010) == .connect)
        limits.connected(at: 1005)
        #expect(limits.next == 1025 && limits.exceeded(at: 1025) == .firstByte)
        limits.sent(at: 1010, isLast: false)
        #expect(limits.next == 1040 && limits.exceeded(at: 1040) == .idle)
        limits.sent(at: 1020, isLast: true)
        #expect(limits.next == 1040 && limits.exceeded(at: 1040) == .firstByte)
        _ = limits.received(at: 1030)
        #expect(limits.next == 1060 && limits.exceeded(at: 1060) == .idle)
        // An early response does not restore the limits of the request.
        limits.sent(at: 1040, isLast: true)
        #expect(limits.next == 1070 && limits.exceeded(at: 1070) == .idle)
    }

    @Test func `an informational response restores the limits of the request`() {
        var limits = deadlines()
        limits.connected(at: 1000)
        _ = limits.received(at: 1010)
        limits.receivedInformational(isSending: false)
        #expect(limits.next == 1030 && limits.exceeded(at: 1030) == .firstByte)
        limits.sent(at: 1015, isLast: false)
        _ = limits.received(at: 1020)
        limits.receivedInformational(isSending: true)
        #expect(limits.next == 1050 && limits.exceeded(at: 1050) == .idle)
        let isFirst = limits.received(at: 1025)
        #expect(isFirst)
    }

    @Test func `the total limit counts from the start and takes precedence`() {
        var limits = deadlines(total: .nanoseconds(40))
        limits.writesBody(at: 1005)
        #expect(limits.next == 1035 && limits.exceeded(at: 1035) == .body, "while the body is written to a file")
        limits.connected(at: 1006)
        _ = limits.received(at: 1030)
        #expect(limits.next == 1040 && limits.exceeded(at: 1040) == .total)
    }

    @Test func `a pause moves every deadline`() {
        var written = Braked(limits: deadlines())
        written.pause(at: 1000)
        written.limits.writesBody(at: 1010)
        written.resume(at: 1100)
        #expect(written.limits.next == 1130, "a portion that was written during the pause")
        var task = Braked(limits: deadlines(total: .nanoseconds(40)))
        task.limits.connected(at: 1000)
        _ = task.limits.received(at: 1005)
        task.pause(at: 1010)
        task.pause(at: 1020)
        #expect(task.limits.isPaused && task.limits.next == nil && task.limits.exceeded(at: 9999) == nil)
        task.resume(at: 1110)
        task.resume(at: 1200)
        #expect(!task.limits.isPaused && task.limits.paused == 100 && task.limits.next == 1135)
        #expect(task.limits.exceeded(at: 1140) == .total)
    }

    @Test func `a pause that ended before the session noticed it is excluded exactly once`() {
        var limits = deadlines(total: .nanoseconds(40))
        limits.connected(at: 1000)
        var pauses = PauseClock()
        pauses.set(true, at: 1010)
        pauses.set(false, at: 1110)
        #expect(limits.exceeded(at: 1120) == .firstByte || limits.exceeded(at: 1120) == .total)
        limits.follow(pauses)
        limits.follow(pauses)
        #expect(limits.paused == 100 && limits.exceeded(at: 1119) == nil && limits.exceeded(at: 1120) == .firstByte)
        pauses.set(true, at: 1115)
        limits.follow(pauses)
        #expect(limits.exceeded(at: 9999) == nil)
        pauses.set(false, at: 1125)
        limits.follow(pauses)
        #expect(limits.paused == 110 && limits.next == 1130)
    }

    @Test func `a pause before the start does not extend the limits, and a lasting pause stops them`() {
        var pauses = PauseClock()
        pauses.set(true, at: 100)
        pauses.set(false, at: 200)
        pauses.set(true, at: 900)
        let timeouts = TransferTimeouts(connect: .nanoseconds(10), firstByte: nil, idle: nil, total: nil)
        var limits = TransferDeadlines(timeouts, pauses: pauses, now: 1000)
        #expect(limits.isPaused && limits.next == nil && limits.connectAllowance(at: 1005) == .max)
        limits.follow(pauses)
        #expect(limits.isPaused && limits.paused == 0)
        pauses.set(false, at: 1050)
        limits.follow(pauses)
        limits.connecting(at: 1055)
        #expect(limits.paused == 50 && limits.next == 1065)
        limits.follow(pauses)
        #expect(limits.paused == 50 && limits.next == 1065)
    }

    @Test func `a connection that libcurl gave up is retried within the remaining connect limit`() {
        var task = Braked(limits: deadlines(total: .nanoseconds(40)))
        #expect(task.limits.outlastsLibcurl(at: 1020))
        task.limits.connecting(at: 1005)
        #expect(task.limits.outlastsLibcurl(at: 1014) && !task.limits.outlastsLibcurl(at: 1015))
        task.pause(at: 1010)
        #expect(task.limits.outlastsLibcurl(at: 2000))
        task.limits.restart(at: 2000)
        task.limits.connecting(at: 2001)
        #expect(task.limits.isPaused && task.limits.paused == 990)
        task.resume(at: 2010)
        #expect(task.limits.paused == 1000 && task.limits.next == 2015)
        #expect(!task.limits.outlastsLibcurl(at: 2015) && task.limits.exceeded(at: 2015) == .connect)
        task.limits.connected(at: 2012)
        #expect(!task.limits.outlastsLibcurl(at: 2013))
    }

    @Test func `without limits there is no deadline`() {
        var limits = TransferDeadlines(.none, now: .max - 5)
        #expect(limits.next == nil && limits.exceeded(at: .max) == nil || limits.next == nil)
        limits.connected(at: .max - 4)
        #expect(limits.next == nil)
    }

    @Test func `a restarted request gets its full connect limit and the rest of its total limit`() {
        let timeouts = TransferTimeouts(
            connect: .nanoseconds(10), firstByte: .nanoseconds(20), total: .nanoseconds(100))
        var task = Braked(limits: TransferDeadlines(timeouts, now: 0))
        task.limits.connecting(at: 0)
        task.limits.connected(at: 5)
        #expect(task.limits.next == 25)
        task.pause(at: 6)
        task.limits.restart(at: 12)
        #expect(task.limits.paused == 6 && task.limits.next == nil)
        task.resume(at: 16)
        task.limits.connecting(at: 16)
        #expect(task.limits.paused == 10 && task.limits.next == 26)
        #expect(task.limits.exceeded(at: 26) == .connect)
        task.limits.connected(at: 20)
        #expect(task.limits.next == 40)
        #expect(task.limits.exceeded(at: 110) == .total)
        #expect(task.limits.exceeded(at: 109) == .firstByte)
    }

    @Test func `waiting for a turn counts toward neither the connect limit nor the total limit`() {
        var limits = deadlines(total: .nanoseconds(40))
        #expect(limits.isSeeking && !limits.isConnected && limits.next == 1002)
        for now in stride(from: Int64(1002), through: 1100, by: 2) {
            limits.look(at: now, othersAreServed: true)
            #expect(limits.exceeded(at: now) == nil && limits.next == now + 2)
        }
        limits.connecting(at: 1101)
        #expect(!limits.isSeeking && limits.next == 1111 && limits.exceeded(at: 1111) == .connect)
        limits.connecting(at: 1105)
        limits.connected(at: 1106)
        #expect(limits.isConnected && limits.next == 1126)
        _ = limits.received(at: 1120)
        #expect(limits.next == 1141 && limits.exceeded(at: 1141) == .total)
    }

    @Test func `waiting for a turn on a ready connection does not count either`() {
        var limits = deadlines(total: .nanoseconds(40))
        limits.look(at: 1009, othersAreServed: true)
        limits.connected(at: 1018)
        #expect(limits.next == 1038)
        limits.sent(at: 1040, isLast: true)
        #expect(limits.next == 1058 && limits.exceeded(at: 1058) == .total)
    }

    @Test func `the wait counts toward the connect limit if no other request is served`() {
        var limits = deadlines()
        for now in stride(from: Int64(1002), to: 1010, by: 2) {
            limits.look(at: now, othersAreServed: false)
            #expect(limits.next == min(now + 2, 1010) && limits.exceeded(at: now) == nil)
        }
        limits.look(at: 1010, othersAreServed: false)
        #expect(limits.exceeded(at: 1010) == .connect)
    }

    @Test func `a pause while a connection is sought or established does not count`() {
        var task = Braked(limits: deadlines(total: .nanoseconds(40)))
        task.pause(at: 1001)
        #expect(task.limits.next == nil && task.limits.connectAllowance(at: 1050) == .max)
        task.resume(at: 1101)
        #expect(task.limits.next == 1102)
        task.limits.connecting(at: 1105)
        task.pause(at: 1108)
        task.resume(at: 1208)
        #expect(task.limits.next == 1215 && task.limits.exceeded(at: 1215) == .connect)
        task.limits.connected(at: 1210)
        _ = task.limits.received(at: 1211)
        #expect(task.limits.next == 1241)

        task = Braked(limits: deadlines())
        task.pause(at: 1001)
        // The connection starts during a pause.
        task.limits.connecting(at: 1050)
        task.resume(at: 1101)
        #expect(task.limits.next == 1111)
    }

    @Test func `libcurl gets at least as much time to connect as the connect limit leaves`() {
        var limits = deadlines()
        // A connection may start just before the next check, and then has its full time.
        #expect(limits.connectAllowance(at: 1000) == 13)
        limits.connecting(at: 1002)
        #expect(limits.connectAllowance(at: 1002) == 10 && limits.connectAllowance(at: 1011) == 1)
        #expect(limits.connectAllowance(at: 2000) == 0)
        limits.connected(at: 1003)
        #expect(limits.connectAllowance(at: 1003) == .max)
        #expect(TransferDeadlines(.none, now: 0).connectAllowance(at: 5) == .max)
    }

    @Test func `idle time counts from the first check without work`() {
        var watch = IdleWatch(lifetime: .nanoseconds(100))
        #expect(watch.due == .max)
        let first = watch.look(at: 1_000)
        #expect(!first && watch.due == 1_100)
        let early = watch.look(at: 1_099)
        #expect(!early)
        watch.wake()
        #expect(watch.due == .max)
        let restarted = watch.look(at: 1_100)
        #expect(!restarted && watch.due == 1_200)
        let over = watch.look(at: 1_200)
        #expect(over && watch.due == .max)
    }

    @Test func `an endless lifetime does not overflow, and a negative one ends immediately`() {
        var endless = IdleWatch(lifetime: .seconds(Int64.max))
        _ = endless.look(at: .max >> 1)
        #expect(endless.due > .max >> 1 && endless.due < .max)
        var none = IdleWatch(lifetime: .seconds(-1))
        _ = none.look(at: 5)
        let over = none.look(at: 5)
        #expect(over)
    }

    @Test(arguments: 0..<20)
    func `a deadline heap behaves like a sorted list`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var heap = DeadlineHeap()
        var model: [Int: Int64] = [:]
        for _ in 0..<3000 {
            let number = Int.random(in: 0..<60, using: &generator)
            switch Int.random(in: 0..<4, using: &generator) {
            case 0, 1:
                let due = Int64.random(in: 0..<1000, using: &generator)
                heap.set(number, due: due)
                model[number] = due
            case 2:
                heap.remove(number)
                model[number] = nil
            default:
                let now = Int64.random(in: 0..<300, using: &generator)
                let popped = heap.popDue(at: now)
                let first = model.values.min()
                #expect((popped != nil) == (first.map { $0 <= now } ?? false))
                if let popped {
                    #expect(model[popped] == first)
                    model[popped] = nil
                }
            }
            #expect(heap.count == model.count && heap.nextDue == model.values.min() ?? .max)
            #expect(heap.due(number) == model[number] ?? .max)
        }
    }
}
