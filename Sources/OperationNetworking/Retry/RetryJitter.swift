// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// How chance spreads the pauses before requests are sent again, so that those who failed together do not return together.
public struct RetryJitter: Sendable, Hashable {
    private enum Kind: Sendable, Hashable { case none, full, equal, decorrelated }

    private let kind: Kind

    /// Not at all: for tests, and where the server spreads by itself.
    public static let none = RetryJitter(kind: .none)
    /// Anywhere between nothing and the pause: the fewest requests in all under load.
    public static let full = RetryJitter(kind: .full)
    /// Half of the pause, and anywhere within the other half.
    public static let equal = RetryJitter(kind: .equal)
    /// Anywhere between the first pause and three times the one before, which takes the place of the growth.
    public static let decorrelated = RetryJitter(kind: .decorrelated)

    func spread(_ bound: Double, base: Double, previous: Double?, longest: Double, by chance: Double) -> Double {
        switch kind {
        case .none: return bound
        case .full: return bound * chance
        case .equal: return bound / 2 + bound / 2 * chance
        case .decorrelated:
            let top = max((previous ?? base) * 3, base)
            return min(base + (top - base) * chance, longest)
        }
    }
}
