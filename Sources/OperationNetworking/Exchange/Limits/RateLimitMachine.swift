// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// The requests that wait for the tokens of one bucket: a value that is given the time, and knows no clock.
package struct RateLimitMachine<Waiter: Sendable>: Sendable {
    private var bucket: TokenBucket
    private var waiters: [UInt64: (isAhead: Bool, waiter: Waiter)] = [:]
    /// The numbers of the waiters in their order.
    ///
    /// Numbers of waiters that left stay for a while.
    private var (ahead, line) = (Fifo<UInt64>(), Fifo<UInt64>())
    private var aheadCount = 0

    package init(bucket: TokenBucket) {
        self.bucket = bucket
    }

    package var waitingCount: Int { waiters.count }

    /// Takes a token, unless others wait for one.
    package mutating func take(now: OperationInstant) -> Bool { waiters.isEmpty && bucket.take(now: now) }

    /// A request waits.
    ///
    /// Each number is higher than all before.
    ///
    /// - Returns: When its turn comes, unless others go first; `nil` if the moment is out of range.
    package mutating func wait(
        _ waiter: Waiter, _ number: UInt64, isAhead: Bool, now: OperationInstant
    ) -> OperationInstant? {
        waiters[number] = (isAhead, waiter)
        if isAhead {
            aheadCount += 1
            ahead.append(number)
        } else {
            line.append(number)
        }
        return bucket.moment(of: isAhead ? aheadCount : waiters.count, now: now)
    }

    /// A request waits no longer; returns `nil` if it does not wait.
    package mutating func leave(_ number: UInt64) -> Waiter? {
        guard let waiter = remove(number) else { return nil }
        // The numbers of those that left are removed when they become the majority.
        if ahead.count + line.count > max(64, waiters.count * 2) {
            _ = ahead.removeAll { waiters[$0] == nil }
            _ = line.removeAll { waiters[$0] == nil }
        }
        return waiter
    }

    /// A token was not used.
    package mutating func giveBack(now: OperationInstant) { bucket.giveBack(now: now) }

    /// The requests that get a token now, in their order.
    package mutating func grant(now: OperationInstant) -> [Waiter] {
        var granted: [Waiter] = []
        while !waiters.isEmpty, bucket.take(now: now), let waiter = next() { granted.append(waiter) }
        return granted
    }

    /// When there is a token for the next request; `nil` if none waits, or if the moment is out of range.
    package mutating func due(now: OperationInstant) -> OperationInstant? {
        waiters.isEmpty ? nil : bucket.moment(of: 1, now: now)
    }

    /// Whether it equals a new one.
    package mutating func isUnused(now: OperationInstant) -> Bool { waiters.isEmpty && bucket.isFull(now: now) }

    private mutating func next() -> Waiter? {
        while let number = ahead.popFirst() ?? line.popFirst() {
            if let waiter = remove(number) { return waiter }
        }
        return nil
    }

    private mutating func remove(_ number: UInt64) -> Waiter? {
        guard let (isAhead, waiter) = waiters.removeValue(forKey: number) else { return nil }
        if isAhead { aheadCount -= 1 }
        return waiter
    }
}

/// A token bucket: tokens return at a steady rate, up to a number.
///
/// It calculates in whole numbers, so that no error adds up.
package struct TokenBucket: Sendable, Equatable {
    /// How many tokens return in a period.
    private let count: Int128
    /// A period in nanoseconds, which is also the amount of the level that one token takes.
    private let period: Int128
    private let capacity: Int128
    /// In each nanosecond the level rises by `count`.
    private var level: Int128
    /// The moment of the level, in nanoseconds.
    private var counted: Int64

    package init(_ count: Int, per period: Duration, burst: Int, now: OperationInstant) {
        self.count = Int128(max(count, 1))
        self.period = Int128(max(period.saturatedNanoseconds, 1))
        // Each factor is below 2^63, so that neither a product nor the sum of two can overflow.
        capacity = Int128(max(burst, 1)) * self.period
        level = capacity
        counted = now.offset.saturatedNanoseconds
    }

    /// How long it takes until all tokens are there again.
    package var fillTime: Duration { .nanoseconds(Int64(clamping: Self.roundedUp(capacity, count))) }

    package mutating func take(now: OperationInstant) -> Bool {
        settle(now)
        guard level >= period else { return false }
        level -= period
        return true
    }

    package mutating func giveBack(now: OperationInstant) {
        settle(now)
        level = min(level + period, capacity)
    }

    /// When so many tokens will be there if none is taken; `nil` if the moment is out of range.
    package mutating func moment(of tokens: Int, now: OperationInstant) -> OperationInstant? {
        settle(now)
        let missing = Int128(max(tokens, 1)) * period - level
        guard missing > 0 else { return now }
        return Int64(exactly: Int128(counted) + Self.roundedUp(missing, count))
            .map { OperationInstant(offset: .nanoseconds($0)) }
    }

    package mutating func isFull(now: OperationInstant) -> Bool {
        settle(now)
        return level == capacity
    }

    private mutating func settle(_ now: OperationInstant) {
        let moment = now.offset.saturatedNanoseconds
        // If a clock runs backwards, no time is counted twice.
        guard moment > counted else { return }
        let passed = min(Int128(moment) - Int128(counted), Int128(Int64.max))
        level = min(level + passed * count, capacity)
        counted = moment
    }

    private static func roundedUp(_ dividend: Int128, _ divisor: Int128) -> Int128 {
        dividend / divisor + (dividend % divisor == 0 ? 0 : 1)
    }
}
