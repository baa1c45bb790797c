// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Rate limits: tokens and waiting requests", .timeLimit(.minutes(1)))
struct RateLimitMachineTests {
    private func moment(_ milliseconds: Int) -> OperationInstant {
        OperationInstant(offset: .milliseconds(milliseconds))
    }

    @Test func `a bucket starts full, refills one token at a time and never exceeds the burst`() {
        var bucket = TokenBucket(10, per: .seconds(1), burst: 3, now: moment(0))
        func takes(_ milliseconds: Int) -> Int {
            var count = 0
            while bucket.take(now: moment(milliseconds)) { count += 1 }
            return count
        }
        #expect(takes(0) == 3)
        let moments = [1, 20].map { bucket.moment(of: $0, now: moment(0)) }
        #expect(moments == [moment(100), moment(2_000)])
        #expect(takes(99) == 0)
        #expect(takes(100) == 1)
        #expect(takes(350) == 2)
        #expect(takes(400) == 1, "the fraction of a token was kept")
        #expect(takes(60_000) == 3)
        #expect(bucket.fillTime == .milliseconds(300))
    }

    @Test func `a rate with a fractional interval in nanoseconds is exact over a long time`() {
        var bucket = TokenBucket(3, per: .seconds(1), burst: 2, now: moment(0))
        _ = bucket.take(now: moment(0))
        var (now, count) = (moment(0), 0)
        while bucket.take(now: now), count < 3_000 {
            count += 1
            now = bucket.moment(of: 1, now: now) ?? .distantFuture
        }
        #expect(count == 3_000)
        #expect(now == moment(1_000_000), "each single wait is rounded up, and the remainder is kept")
    }

    @Test func `a returned token can be taken again, and the bucket never exceeds the burst`() {
        var bucket = TokenBucket(1, per: .seconds(1), burst: 1, now: moment(0))
        let first = bucket.take(now: moment(0))
        for _ in 0..<2 {
            bucket.giveBack(now: moment(0))
            let isFull = bucket.isFull(now: moment(0))
            #expect(isFull)
        }
        let others = (0..<2).map { _ in bucket.take(now: moment(0)) }
        #expect(first && others == [true, false])
    }

    @Test func `a clock that jumps ahead fills the bucket once, and a backward jump adds no tokens`() {
        var bucket = TokenBucket(1, per: .seconds(1), burst: 2, now: moment(0))
        let late = (0..<3).map { _ in bucket.take(now: .distantFuture) } + [bucket.take(now: moment(0))]
        #expect(late == [true, true, false, false])
        let next = bucket.moment(of: 1, now: .distantFuture)
        #expect(next == nil, "that moment is out of range")
        bucket = TokenBucket(1, per: .seconds(1), burst: 1, now: moment(5_000))
        let taken = [5_000, 1_000, 5_999, 6_000].map { bucket.take(now: moment($0)) }
        #expect(taken == [true, false, false, true])
    }

    @Test func `extreme and invalid rates are clamped and never trap`() {
        let counts = [Int.min, -1, 0, 1, 3, .max]
        let periods: [Duration] = [.seconds(Int64.min), .zero, .nanoseconds(1), .seconds(1), .seconds(Int64.max)]
        let moments = [OperationInstant(offset: .seconds(Int64.min)), moment(0), moment(1), .distantFuture]
        for count in counts {
            for period in periods {
                for burst in counts {
                    for (start, end) in zip(moments, moments.dropFirst() + [.distantFuture]) {
                        var bucket = TokenBucket(count, per: period, burst: burst, now: start)
                        let first = bucket.take(now: start)
                        bucket.giveBack(now: start)
                        let second = bucket.take(now: end)
                        _ = bucket.moment(of: .max, now: end)
                        #expect(first && second && bucket.fillTime > .zero)
                    }
                }
            }
        }
    }

    @Test func `requests get their tokens in the order of arrival, except that urgent requests go first`() {
        var machine = RateLimitMachine<Int>(bucket: TokenBucket(1, per: .seconds(1), burst: 1, now: moment(0)))
        var taken = [machine.take(now: moment(0))]
        var times = (1...3).map { machine.wait($0, UInt64($0), isAhead: false, now: moment(0)) }
        #expect(times == [moment(1_000), moment(2_000), moment(3_000)])
        times = (4...5).map { machine.wait($0, UInt64($0), isAhead: true, now: moment(500)) }
        #expect(times == [moment(1_000), moment(2_000)])
        taken.append(machine.take(now: moment(1_000)))
        #expect(taken == [true, false], "no request overtakes the waiting requests")
        let left = (0..<2).map { _ in machine.leave(2) }
        #expect(left == [2, nil])
        let order = (1...5).map { machine.grant(now: moment($0 * 1_000)) }
        #expect(order == [[4], [5], [1], [3], []])
        let (due, isUnused) = (machine.due(now: moment(5_000)), machine.isUnused(now: moment(5_000)))
        #expect(due == nil && isUnused)
    }

    @Test(arguments: 0..<20)
    func `under random schedules, no window exceeds the burst and the rate, and no token stays unused`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let (rate, burst) = (Int.random(in: 1...50, using: &random), Int.random(in: 1...5, using: &random))
        var machine = RateLimitMachine<UInt64>(
            bucket: TokenBucket(rate, per: .seconds(1), burst: burst, now: moment(0)))
        var (now, number) = (0, UInt64(0))
        // Requests whose `isAhead` is true are sent before all others.
        var (waiting, sent): ([(number: UInt64, isAhead: Bool)], [Int]) = ([], [])
        for _ in 0..<2_000 {
            switch Int.random(in: 0..<4, using: &random) {
            case 0: now += Int.random(in: 0...40, using: &random)
            case 1 where !waiting.isEmpty:
                let number = waiting.remove(at: Int.random(in: 0..<waiting.count, using: &random)).number
                let left = machine.leave(number)
                #expect(left == number)
            default:
                number += 1
                if machine.take(now: moment(now)) {
                    #expect(waiting.isEmpty)
                    sent.append(now)
                } else {
                    let isAhead = random.chance(1, in: 8)
                    _ = machine.wait(number, number, isAhead: isAhead, now: moment(now))
                    let position = isAhead ? waiting.prefix { $0.isAhead }.count : waiting.count
                    waiting.insert((number, isAhead), at: position)
                }
            }
            let granted = machine.grant(now: moment(now))
            #expect(granted == waiting.prefix(granted.count).map(\.number))
            waiting.removeFirst(granted.count)
            sent += granted.map { _ in now }
            #expect(machine.waitingCount == waiting.count)
            let due = machine.due(now: moment(now))
            #expect(due.map { $0 > moment(now) } ?? waiting.isEmpty)
        }
        for first in stride(from: 0, to: sent.count, by: 7) {
            for last in first..<sent.count {
                #expect((last - first + 1 - burst) * 1_000 <= rate * (sent[last] - sent[first]))
            }
        }
    }
}
