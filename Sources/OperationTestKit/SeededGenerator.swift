// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A random number generator that produces the same numbers for the same seed on all platforms and in all versions of
/// OperationTestKit.
///
/// ```swift
/// import OperationTestKit
///
/// var generator = SeededGenerator(seed: 4711)
/// let delays = (0..<10).map { _ in Int.random(in: 0..<100, using: &generator) }
/// ```
///
/// The generator uses the SplitMix64 algorithm. Do not use it to create secrets.
public struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Creates a generator from a seed.
    ///
    /// If a test fails, print the seed, so that you can repeat the test with the same numbers.
    public init(seed: UInt64) {
        state = seed
    }

    /// Returns the next random number.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Returns `true` with a probability of `numerator` divided by `denominator`.
    package mutating func chance(_ numerator: Int, in denominator: Int) -> Bool {
        Int.random(in: 0..<denominator, using: &self) < numerator
    }
}

/// The number of repetitions in this package's own tests, which is small in CI and full in a soak test.
package enum Rounds {
    /// The fraction of the full number that runs, from `OPERATIONKIT_SOAK`, such as 1 or 0.1, or nil in CI.
    private static let part = ProcessInfo.processInfo.environment["OPERATIONKIT_SOAK"].flatMap(Double.init)
        .flatMap { $0.isFinite ? $0 : nil }

    /// Whether this is a soak test.
    package static let isSoak = part != nil

    /// The time limit in minutes for each test in a suite with repetitions.
    package static var minutes: Int { isSoak ? 30 : 5 }

    /// The first seed of a test with many seeds, which is fixed in CI and random in a soak test.
    package static let firstSeed: UInt64 = isSoak ? UInt64.random(in: 0..<1 << 48) : 0

    /// Returns the current number of rounds.
    package static func count(ci: Int, soak: Int) -> Int {
        if let part { return max(ci, Int(min(Double(soak) * part, 1e15))) }
        #if TSAN
            // Every step is many times slower here, and the threads matter more than the number of rounds.
            return max(ci / 5, 1)
        #elseif ASAN
            // Each step takes twice as long here, but few rounds are enough for this check.
            return max(ci / 2, 1)
        #else
            return ci
        #endif
    }
}
