// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// How many requests may be sent again: what keeps a thousand operations that fail together from making it worse.
///
/// There is an allowance for each origin (scheme, host and port), shared by all operations that have this budget. For
/// every ten first attempts within ten seconds two requests may be sent again, and besides one in a second, of which ten
/// can be saved up. Nobody waits for an allowance: an operation that gets none fails with the error that it has.
///
/// Only what is shared can limit anything: keep a budget of your own where all operations get it, and make none for each.
/// What an origin spent is forgotten an hour after it was last asked for.
///
/// ```swift
/// enum Budgets {
///     static let generous = RetryBudget(share: 0.5, reserve: 100)
/// }
/// ```
public final class RetryBudget: Sendable {
    private struct Books {
        var allowances: [RequestOrigin: RetryAllowance] = [:]
        /// How many there may be before those that nobody needs are looked for.
        var limit = 64
    }

    /// The budget of all operations that have no other, for the whole process, by the clock of the system.
    ///
    /// Tests that run side by side share it, too: give each operation, or base, under test a budget of its own.
    public static let shared = RetryBudget()

    private let terms: RetryTerms
    private let clock: any OperationClock
    private let books = Locked(Books())

    /// Makes a budget of its own.
    ///
    /// - Parameters:
    ///   - share: How many repetitions each first attempt earns: 0.2.
    ///   - window: When that lapses: after 10 seconds.
    ///   - reserve: How many repetitions there are without any first attempt: 10.
    ///   - refillPerSecond: How many of these come back in a second: one.
    ///   - clock: Where the time is read.
    public init(
        share: Double = 0.2, window: Duration = .seconds(10), reserve: Int = 10, refillPerSecond: Double = 1,
        clock: any OperationClock = .system
    ) {
        self.clock = clock
        terms = RetryTerms(share: share, window: window, reserve: reserve, refillPerSecond: refillPerSecond)
    }

    /// Notes that a request is sent to an origin for the first time.
    package func earn(for origin: RequestOrigin) {
        withAllowance(of: origin) { $0.earn(terms, now: $1) }
    }

    /// Asks to send a request to an origin again.
    package func spend(for origin: RequestOrigin) -> Bool {
        withAllowance(of: origin) { $0.spend(terms, now: $1) }
    }

    /// Gives back what was spent for a request that is not sent.
    package func refund(for origin: RequestOrigin) {
        withAllowance(of: origin) { $0.refund(terms, now: $1) }
    }

    /// How many requests could be sent to an origin again now.
    package func left(for origin: RequestOrigin) -> Int {
        withAllowance(of: origin) { $0.left(terms, now: $1) }
    }

    /// How many origins it remembers.
    package var originCount: Int { books.withLock { $0.allowances.count } }

    /// How many requests could be sent to the origin of a URL again now; nil if nothing can be sent there.
    public func left(for url: URL) -> Int? {
        RequestOrigin(of: url).map { left(for: $0) }
    }

    private func withAllowance<Result>(
        of origin: RequestOrigin, _ body: (inout RetryAllowance, OperationInstant) -> Result
    ) -> Result {
        // Outside the lock, for the clock may be a user's.
        let now = clock.now
        return books.withLock { books in
            if books.allowances[origin] == nil, books.allowances.count >= books.limit { tidy(&books, now) }
            return body(&books.allowances[origin, default: RetryAllowance(terms, now: now)], now)
        }
    }

    /// Forgets the origins that nobody asked for lately; looked for less often the more there are.
    private func tidy(_ books: inout Books, _ now: OperationInstant) {
        books.allowances = books.allowances.filter { _, allowance in
            var allowance = allowance
            return !allowance.isForgettable(terms, now: now)
        }
        books.limit = max(64, books.allowances.count * 2)
    }
}
