// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A shared limit on the total number of retries, so that the retries of many failed requests do not overload a server.
///
/// A budget has a separate allowance for each origin, which consists of a scheme, a host and a port. By default, ten
/// first attempts within ten seconds allow two retries. The allowance also includes a reserve of ten retries, which the
/// budget refills at a rate of one retry per second. If the allowance is used up, an operation does not repeat a failed
/// attempt, but fails with the error of this attempt.
///
/// Store your own budget where all operations can use it, because a separate budget for each operation does not limit
/// the total number of retries. After an hour without requests to an origin, the budget may reset the allowance for
/// that origin.
///
/// ```swift
/// enum Budgets {
///     static let generous = RetryBudget(share: 0.5, reserve: 100)
/// }
/// ```
public final class RetryBudget: Sendable {
    /// The shared budget of the process, which ``Retry`` uses by default.
    ///
    /// This budget uses the system clock. Tests that run in parallel also share the budget, so use a separate budget
    /// for each test.
    public static let shared = RetryBudget()

    /// The share of a repeated request that a first attempt earns.
    fileprivate let share: Double
    /// The time after which an earned share expires.
    fileprivate let window: Duration
    /// The number of repeated requests that are allowed without any first attempt.
    fileprivate let reserve: Double
    /// The number of requests by which the reserve refills each second.
    fileprivate let refillPerSecond: Double
    private let clock: any OperationClock
    /// The allowances, and the number of origins at which the budget removes those that are no longer needed.
    private let books = Locked<(allowances: [RequestOrigin: RetryAllowance], limit: Int)>(([:], 64))

    /// Creates a budget from a share for each first attempt and a reserve.
    ///
    /// - Parameters:
    ///   - share: The number of retries that each first attempt adds to the allowance. The default is 0.2.
    ///   - window: The time after which the share of a first attempt expires. The default is 10 seconds.
    ///   - reserve: The number of retries that the budget allows in addition to the shares of the first attempts. The
    ///     default is 10.
    ///   - refillPerSecond: The number of retries per second by which the budget refills the reserve. The default is 1.
    ///   - clock: The clock by which the budget measures the window and refills the reserve. The default is the system
    ///     clock.
    public init(
        share: Double = 0.2, window: Duration = .seconds(10), reserve: Int = 10, refillPerSecond: Double = 1,
        clock: any OperationClock = .system
    ) {
        self.clock = clock
        self.share = share > 0 ? min(share, 1e6) : 0
        self.window = max(window, .milliseconds(10)).clamped
        self.reserve = Double(max(reserve, 0))
        self.refillPerSecond = refillPerSecond > 0 ? min(refillPerSecond, 1e6) : 0
    }

    /// Records that a request is sent to an origin for the first time.
    package func earn(for origin: RequestOrigin) {
        withAllowance(of: origin) { $0.earn(self, now: $1) }
    }

    /// Spends an allowance for sending a request to an origin again, and returns whether there was one.
    package func spend(for origin: RequestOrigin) -> Bool {
        withAllowance(of: origin) { $0.spend(self, now: $1) }
    }

    /// Returns the allowance of a request that was not sent after all.
    package func refund(for origin: RequestOrigin) {
        withAllowance(of: origin) { $0.refund(self, now: $1) }
    }

    /// Returns the number of requests that could be sent again to an origin now.
    package func left(for origin: RequestOrigin) -> Int {
        withAllowance(of: origin) { $0.left(self, now: $1) }
    }

    /// The number of origins for which the budget keeps an allowance.
    package var originCount: Int { books.withLock { $0.allowances.count } }

    /// Returns the number of retries that the budget currently allows for a URL's origin.
    ///
    /// - Returns: The number of retries, or `nil` if the URL is not a valid `http` or `https` URL.
    package func left(for url: URL) -> Int? {
        RequestOrigin(of: url).map { left(for: $0) }
    }

    private func withAllowance<Result>(
        of origin: RequestOrigin, _ body: (inout RetryAllowance, OperationInstant) -> Result
    ) -> Result {
        // Read the clock without holding the lock, because it may be an implementation by the app.
        let now = clock.now
        return books.withLock { books in
            if let known = books.allowances.index(forKey: origin) { return body(&books.allowances.values[known], now) }
            // The more origins there are, the less often the budget removes those that were not used recently.
            if books.allowances.count >= books.limit {
                books.allowances = books.allowances.filter { _, allowance in
                    var allowance = allowance
                    return !allowance.isForgettable(self, now: now)
                }
                books.limit = max(64, books.allowances.count * 2)
            }
            return body(&books.allowances[origin, default: RetryAllowance(self, now: now)], now)
        }
    }
}

/// The number of requests that may be sent again to one origin, as a value that receives the time.
///
/// Each first attempt earns a share of a repeated request, which expires after some time. In addition, a small reserve
/// refills over time. Earned shares are spent before the reserve.
///
/// So the load on a failing server stays below (1 + share) times its usual load, plus the reserve, regardless of the
/// number of failures.
struct RetryAllowance: Sendable {
    private static let slicesInWindow: Int64 = 10

    /// The shares that were earned in each slice of the window, in the order of the slices.
    private var earnings: [(slice: Int64, amount: Double)] = []
    private var reserve: Double
    private var counted: OperationInstant

    init(_ terms: RetryBudget, now: OperationInstant) {
        reserve = terms.reserve
        counted = now
    }

    /// Records that a request is sent for the first time.
    mutating func earn(_ terms: RetryBudget, now: OperationInstant) {
        settle(terms, now)
        add(terms.share, terms, now)
    }

    private mutating func add(_ amount: Double, _ terms: RetryBudget, _ now: OperationInstant) {
        guard amount > 0 else { return }
        let slice = Self.slice(of: now, terms)
        if let last = earnings.indices.last, earnings[last].slice == slice {
            earnings[last].amount += amount
        } else {
            earnings.append((slice, amount))
        }
    }

    /// Spends an allowance for a repeated request, and returns `false` if there is none.
    mutating func spend(_ terms: RetryBudget, now: OperationInstant) -> Bool {
        settle(terms, now)
        // The sum of ten tenths is slightly less than one.
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

    /// Returns the allowance of a request that was not sent.
    mutating func refund(_ terms: RetryBudget, now: OperationInstant) {
        settle(terms, now)
        let toReserve = min(max(terms.reserve - reserve, 0), 1)
        reserve += toReserve
        add(1 - toReserve, terms, now)
    }

    /// Returns the number of requests that could be sent again now.
    mutating func left(_ terms: RetryBudget, now: OperationInstant) -> Int {
        settle(terms, now)
        return Int(min(available + 1e-9, 1e9))
    }

    /// Returns whether the allowance is equal to a new one, or was not used for a long time.
    mutating func isForgettable(_ terms: RetryBudget, now: OperationInstant) -> Bool {
        let isOld = counted.duration(to: now) > max(Self.memory, terms.window)
        settle(terms, now)
        return isOld || earnings.isEmpty && reserve >= terms.reserve
    }

    /// The time after which an unused allowance is removed, because a reserve that never refills would be kept forever.
    private static let memory = Duration.seconds(3600)

    private var available: Double { earnings.reduce(reserve) { $0 + $1.amount } }

    /// Removes expired shares, and refills the reserve.
    private mutating func settle(_ terms: RetryBudget, _ now: OperationInstant) {
        let oldest = Self.slice(of: now, terms) - Self.slicesInWindow
        while let first = earnings.first, first.slice <= oldest { earnings.removeFirst() }
        guard now > counted else { return }
        let passed = Double(counted.duration(to: now).saturatedNanoseconds) / 1e9
        reserve = min(reserve + passed * terms.refillPerSecond, max(terms.reserve, reserve))
        counted = now
    }

    private static func slice(of now: OperationInstant, _ terms: RetryBudget) -> Int64 {
        now.offset.saturatedNanoseconds / max(terms.window.saturatedNanoseconds / slicesInWindow, 1)
    }
}
