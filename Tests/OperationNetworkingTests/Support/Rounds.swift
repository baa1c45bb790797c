// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import Testing

/// How often a test repeats: a slice in CI, the full count of the issue in the soak.
enum Rounds {
    /// The part of the full count that is wanted: 1 in the soak, 0.1 in one under a sanitizer; nil in CI.
    private static let part = ProcessInfo.processInfo.environment["OPERATIONKIT_SOAK"].flatMap(Double.init)

    static let isSoak = part != nil

    /// How long the tests of a suite that repeats may take, each of them.
    static var timeLimit: TimeLimitTrait.Duration { .minutes(isSoak ? 30 : 5) }

    /// The first seed of a test that tries many: the same in CI every time, another in each soak.
    static let firstSeed: UInt64 = isSoak ? UInt64.random(in: 0..<1 << 48) : 0

    static func count(ci: Int, soak: Int) -> Int {
        if let part { return max(ci, Int(Double(soak) * part)) }
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
