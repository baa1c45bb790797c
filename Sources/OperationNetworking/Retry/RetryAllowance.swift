// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// What is left of the right to send again to one origin: a pure value, told the time.
///
/// Each first attempt earns a share of a repetition, which lapses after a while; besides, a small reserve fills up with
/// time. What was earned is spent before the reserve. So the load on a server that fails stays below 1 + share of what it
/// would be anyway, and the reserve, however many fail.
struct RetryAllowance: Sendable, Equatable {
    /// What was earned in one slice of the window.
    private struct Earning: Sendable, Equatable {
        let slice: Int64
        var amount: Double
    }

    private static let slicesInWindow: Int64 = 10

    private var earnings: [Earning] = []
    private var reserve: Double
    private var counted: OperationInstant

    init(_ terms: RetryTerms, now: OperationInstant) {
        reserve = terms.reserve
        counted = now
    }

    /// A request is sent for the first time.
    mutating func earn(_ terms: RetryTerms, now: OperationInstant) {
        settle(terms, now)
        add(terms.share, terms, now)
    }

    private mutating func add(_ amount: Double, _ terms: RetryTerms, _ now: OperationInstant) {
        guard amount > 0 else { return }
        let slice = Self.slice(of: now, terms)
        if let last = earnings.indices.last, earnings[last].slice == slice {
            earnings[last].amount += amount
        } else {
            earnings.append(Earning(slice: slice, amount: amount))
        }
    }

    /// A request is to be sent again; false if that would be too much.
    mutating func spend(_ terms: RetryTerms, now: OperationInstant) -> Bool {
        settle(terms, now)
        // A tenth that was added ten times is a little less than one.
        guard available > 1 - 1e-9 else { return false }
        var price = 1.0
        while price > 0, let first = earnings.first {
            let part = min(price, first.amount)
            price -= part
            if part < first.amount { earnings[0].amount -= part } else { earnings.removeFirst() }
        }
        reserve = max(reserve - price, 0)
        return true
    }

    /// A request for which it was spent is not sent.
    mutating func refund(_ terms: RetryTerms, now: OperationInstant) {
        settle(terms, now)
        let toReserve = min(max(terms.reserve - reserve, 0), 1)
        reserve += toReserve
        add(1 - toReserve, terms, now)
    }

    /// How many requests could be sent again now.
    mutating func left(_ terms: RetryTerms, now: OperationInstant) -> Int {
        settle(terms, now)
        return Int(min(available + 1e-9, 1e9))
    }

    /// Whether it is as a new one would be, or nobody asked for it for so long that it need not be kept.
    mutating func isForgettable(_ terms: RetryTerms, now: OperationInstant) -> Bool {
        let isOld = counted.duration(to: now) > max(Self.memory, terms.window)
        settle(terms, now)
        return isOld || earnings.isEmpty && reserve >= terms.reserve
    }

    /// A reserve that does not fill up would have to be kept for ever.
    private static let memory = Duration.seconds(3600)

    private var available: Double { earnings.reduce(reserve) { $0 + $1.amount } }

    /// Lets go of what lapsed, and fills the reserve up.
    private mutating func settle(_ terms: RetryTerms, _ now: OperationInstant) {
        let oldest = Self.slice(of: now, terms) - Self.slicesInWindow
        while let first = earnings.first, first.slice <= oldest { earnings.removeFirst() }
        guard now > counted else { return }
        let passed = Double(counted.duration(to: now).saturatedNanoseconds) / 1e9
        reserve = min(reserve + passed * terms.refillPerSecond, max(terms.reserve, reserve))
        counted = now
    }

    private static func slice(of now: OperationInstant, _ terms: RetryTerms) -> Int64 {
        now.offset.saturatedNanoseconds / max(terms.window.saturatedNanoseconds / slicesInWindow, 1)
    }
}

/// The numbers of a budget, none of them negative.
struct RetryTerms: Sendable, Equatable {
    /// How much of a repetition a first attempt earns.
    let share: Double
    /// When that lapses.
    let window: Duration
    /// How many repetitions there are without any first attempt.
    let reserve: Double
    /// How many of those come back in a second.
    let refillPerSecond: Double

    init(share: Double, window: Duration, reserve: Int, refillPerSecond: Double) {
        self.share = share > 0 ? min(share, 1e6) : 0
        self.window = max(window, .milliseconds(10)).clamped
        self.reserve = Double(max(reserve, 0))
        self.refillPerSecond = refillPerSecond > 0 ? min(refillPerSecond, 1e6) : 0
    }
}
