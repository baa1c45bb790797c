// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

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
