// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import Testing

/// How often a test repeats: a slice in CI, the full count of the issue in the soak.
enum Rounds {
    static let isSoak = soakShare != nil

    /// How much of the full counts is run: `OPERATIONKIT_SOAK=0.1` is a tenth.
    private static let soakShare = ProcessInfo.processInfo.environment["OPERATIONKIT_SOAK"].flatMap(Double.init)

    /// How long the tests of a suite that repeats may take, each of them.
    static var timeLimit: TimeLimitTrait.Duration { .minutes(isSoak ? 30 : 5) }

    /// The first seed of a test that tries many: the same in CI every time, another in each soak.
    static let firstSeed: UInt64 = isSoak ? UInt64.random(in: 0..<1 << 48) : 0

    static func count(ci: Int, soak: Int) -> Int {
        if let soakShare { return max(Int(Double(soak) * soakShare), ci) }
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
