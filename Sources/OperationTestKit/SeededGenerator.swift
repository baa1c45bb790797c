// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A random number generator that gives the same numbers for the same seed, on every platform and in every version.
///
/// ```swift
/// import OperationTestKit
///
/// var generator = SeededGenerator(seed: 4711)
/// let delays = (0..<10).map { _ in Int.random(in: 0..<100, using: &generator) }
/// let isRare = generator.chance(1, in: 10)
/// ```
///
/// SplitMix64: small, fast, and good enough to choose schedules; not for secrets.
public struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Makes a generator; print the seed of a run that failed to be able to repeat it.
    public init(seed: UInt64) {
        state = seed
    }

    /// The next number.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// True in about `numerator` of `denominator` calls.
    public mutating func chance(_ numerator: Int, in denominator: Int) -> Bool {
        Int.random(in: 0..<denominator, using: &self) < numerator
    }
}
