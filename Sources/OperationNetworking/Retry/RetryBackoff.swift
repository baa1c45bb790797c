// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How long to wait before a request is sent again: a value that knows nothing of requests.
///
/// ```swift
/// let patient = RetryBackoff.exponential(from: .seconds(1), upTo: .seconds(60))
/// let even = RetryBackoff.constant(.seconds(5), jitter: .none)
/// ```
///
/// No pause is negative, none is longer than ``longest``, and no number of attempts makes the arithmetic overflow.
public struct RetryBackoff: Sendable, Hashable {
    private enum Growth: Sendable, Hashable {
        case constant
        case linear
        case exponential(multiplier: Double)
    }

    /// The pause after the first attempt, before chance has its say.
    public var base: Duration {
        didSet {
            // What is constant has no bound besides.
            if growth == .constant { longest = base }
        }
    }
    /// No pause is longer.
    public var longest: Duration
    /// How chance spreads the pauses.
    public var jitter: RetryJitter
    private var growth: Growth

    /// Each pause is at most what you state: anywhere below it by chance, or just that with `jitter: .none`.
    public static func constant(_ pause: Duration, jitter: RetryJitter = .full) -> RetryBackoff {
        RetryBackoff(base: pause, longest: pause, jitter: jitter, growth: .constant)
    }

    /// Each pause is longer than the one before by the first one.
    public static func linear(
        from base: Duration, upTo longest: Duration = .seconds(20), jitter: RetryJitter = .full
    ) -> RetryBackoff {
        RetryBackoff(base: base, longest: longest, jitter: jitter, growth: .linear)
    }

    /// Each pause is a multiple of the one before.
    ///
    /// A multiplier below one, or one that is no number, counts as one.
    public static func exponential(
        from base: Duration, upTo longest: Duration = .seconds(20), multiplier: Double = 2, jitter: RetryJitter = .full
    ) -> RetryBackoff {
        RetryBackoff(
            base: base, longest: longest, jitter: jitter,
            growth: .exponential(multiplier: multiplier >= 1 ? multiplier : 1))
    }

    /// From half a second on, doubled each time, at most 20 seconds, anywhere below that by chance.
    public static let standard = exponential(from: .milliseconds(500))

    /// From a second on: for servers that said that it is too much for them.
    public static let throttled = exponential(from: .seconds(1))

    /// The pause after an attempt.
    ///
    /// - Parameters:
    ///   - attempt: The number of the attempt that failed, from 1.
    ///   - previous: The pause before that attempt; nil after the first one.
    ///   - chance: A number from 0 up to 1, which decides within the bounds that ``jitter`` sets.
    public func pause(after attempt: Int, previous: Duration? = nil, chance: Double) -> Duration {
        let longest = Self.seconds(longest)
        let base = min(Self.seconds(base), longest)
        let bound = min(grown(base, by: max(attempt, 1) - 1), longest)
        let chance = chance >= 0 ? min(chance, 1) : 0
        let seconds = jitter.spread(
            bound, base: base, previous: previous.map(Self.seconds), longest: longest, by: chance)
        return .nanoseconds(Int64(min(seconds * 1e9, 9e18)))
    }

    private func grown(_ base: Double, by steps: Int) -> Double {
        // Nothing grows out of nothing, not even without bounds.
        guard base > 0 else { return 0 }
        return switch growth {
        case .constant: base
        case .linear: base * (Double(steps) + 1)
        case .exponential(let multiplier): base * power(multiplier, steps)
        }
    }

    private func power(_ base: Double, _ exponent: Int) -> Double {
        var (result, square, rest) = (1.0, base, exponent)
        while rest > 0 {
            if rest & 1 == 1 { result *= square }
            square *= square
            rest >>= 1
        }
        return result
    }

    /// A number that is neither negative nor infinite.
    private static func seconds(_ duration: Duration) -> Double {
        let (seconds, attoseconds) = max(duration, .zero).clamped.components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}
