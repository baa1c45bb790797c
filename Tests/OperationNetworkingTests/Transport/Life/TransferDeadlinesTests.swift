// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationNetworking
import Testing

@Suite(.timeLimit(.minutes(1)))
struct TransferDeadlinesTests {
    private func deadlines(total: Duration? = nil) -> TransferDeadlines {
        TransferDeadlines(
            TransferTimeouts(
                connect: .nanoseconds(10), firstByte: .nanoseconds(20), idle: .nanoseconds(30), total: total),
            now: 1000)
    }

    @Test func `each phase has its own limit`() {
        var limits = deadlines()
        #expect(limits.next == 1010 && limits.exceeded(at: 1009) == nil && limits.exceeded(at: 1010) == .connect)
        limits.connected(at: 1005)
        #expect(limits.next == 1025 && limits.exceeded(at: 1025) == .firstByte)
        limits.sent(at: 1010, isLast: false)
        #expect(limits.next == 1040 && limits.exceeded(at: 1040) == .idle)
        limits.sent(at: 1020, isLast: true)
        #expect(limits.next == 1040 && limits.exceeded(at: 1040) == .firstByte)
        _ = limits.received(at: 1030)
        #expect(limits.next == 1060 && limits.exceeded(at: 1060) == .idle)
        // An early answer does not bring the request's limits back.
        limits.sent(at: 1040, isLast: true)
        #expect(limits.next == 1070 && limits.exceeded(at: 1070) == .idle)
    }

    @Test func `the total counts from the beginning, and comes first`() {
        var limits = deadlines(total: .nanoseconds(40))
        limits.connected(at: 1001)
        _ = limits.received(at: 1030)
        #expect(limits.next == 1040 && limits.exceeded(at: 1040) == .total)
    }

    @Test func `a pause moves everything`() {
        var limits = deadlines(total: .nanoseconds(40))
        limits.connected(at: 1000)
        _ = limits.received(at: 1005)
        limits.pause(at: 1010)
        limits.pause(at: 1020)
        #expect(limits.next == nil && limits.exceeded(at: 9999) == nil)
        limits.resume(at: 1110)
        limits.resume(at: 1200)
        #expect(limits.paused == 100 && limits.next == 1135 && limits.exceeded(at: 1140) == .total)
    }

    @Test func `without limits there is no moment`() {
        var limits = TransferDeadlines(.none, now: .max - 5)
        #expect(limits.next == nil && limits.exceeded(at: .max) == nil || limits.next == nil)
        limits.connected(at: .max - 4)
        #expect(limits.next == nil)
    }

    @Test func `sent anew, a request has all of its time to connect, and what is left of the whole`() {
        var deadlines = TransferDeadlines(
            TransferTimeouts(connect: .nanoseconds(10), firstByte: .nanoseconds(20), total: .nanoseconds(100)), now: 0)
        deadlines.connected(at: 5)
        #expect(deadlines.next == 25)
        deadlines.pause(at: 6)
        deadlines.restart(at: 16)
        #expect(deadlines.paused == 10 && deadlines.next == 26)
        #expect(deadlines.exceeded(at: 26) == .connect)
        deadlines.connected(at: 20)
        #expect(deadlines.next == 40)
        #expect(deadlines.exceeded(at: 110) == .total)
        #expect(deadlines.exceeded(at: 109) == .firstByte)
    }
}
