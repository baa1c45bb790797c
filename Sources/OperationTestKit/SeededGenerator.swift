// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

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

/// How often a test of ours repeats: a slice in CI, the full count in the soak.
package enum Rounds {
    /// The part of the full counts that is run: `OPERATIONKIT_SOAK=1` is all of it, `0.1` a tenth; nil in CI.
    private static let part = ProcessInfo.processInfo.environment["OPERATIONKIT_SOAK"].flatMap(Double.init)
        .flatMap { $0.isFinite ? $0 : nil }

    /// Whether this is the soak.
    package static let isSoak = part != nil

    /// How many minutes the tests of a suite that repeats may take, each of them.
    package static var minutes: Int { isSoak ? 30 : 5 }

    /// The first seed of a test that tries many: the same in CI every time, another in each soak.
    package static let firstSeed: UInt64 = isSoak ? UInt64.random(in: 0..<1 << 48) : 0

    /// How many rounds there are now.
    package static func count(ci: Int, soak: Int) -> Int {
        if let part { return max(ci, Int(min(Double(soak) * part, 1e15))) }
        #if TSAN
            // Every step is many times slower there, and it is the threads that count and not the rounds.
            return max(ci / 5, 1)
        #elseif ASAN
            // Twice as slow, and what it looks for shows itself in few rounds.
            return max(ci / 2, 1)
        #else
            return ci
        #endif
    }
}
