// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationNetworking
import OperationTestKit
import Testing

struct RetryBackoffTests {
    @Test func `pauses grow as configured, up to the longest pause`() {
        func pauses(_ backoff: RetryBackoff) -> [Duration] {
            (1...6).map { backoff.pause(after: $0, chance: 0.5) }
        }
        func seconds(_ values: Double...) -> [Duration] { values.map { .seconds($0) } }
        #expect(pauses(.constant(.seconds(3), jitter: .none)) == seconds(3, 3, 3, 3, 3, 3))
        #expect(
            pauses(.linear(from: .seconds(2), upTo: .seconds(9), jitter: .none)) == seconds(2, 4, 6, 8, 9, 9))
        #expect(
            pauses(.exponential(from: .milliseconds(500), upTo: .seconds(10), jitter: .none))
                == seconds(0.5, 1, 2, 4, 8, 10))
        #expect(
            pauses(.exponential(from: .seconds(1), upTo: .seconds(100), multiplier: 3, jitter: .none))
                == seconds(1, 3, 9, 27, 81, 100))
        #expect(pauses(.standard) == seconds(0.25, 0.5, 1, 2, 4, 8))
    }

    @Test func `a constant backoff follows its base`() {
        let backoff = with(RetryBackoff.constant(.seconds(3), jitter: .none)) { $0.base = .seconds(6) }
        #expect(backoff.pause(after: 5, chance: 0.5) == .seconds(6))
    }

    @Test func `chance chooses a pause within the bounds of each jitter`() {
        let base = RetryBackoff.exponential(from: .seconds(1), upTo: .seconds(20), jitter: .none)
        func pause(_ jitter: RetryJitter, _ chance: Double, previous: Duration? = nil) -> Duration {
            var backoff = base
            backoff.jitter = jitter
            return backoff.pause(after: 3, previous: previous, chance: chance)
        }
        #expect(pause(.none, 0) == .seconds(4))
        #expect(pause(.full, 0) == .zero)
        #expect(pause(.full, 1) == .seconds(4))
        #expect(pause(.equal, 0) == .seconds(2))
        #expect(pause(.equal, 1) == .seconds(4))
        #expect(pause(.decorrelated, 0, previous: .seconds(2)) == .seconds(1))
        #expect(pause(.decorrelated, 1, previous: .seconds(2)) == .seconds(6))
        #expect(pause(.decorrelated, 1, previous: .seconds(19)) == .seconds(20))
    }

    @Test func `extreme values cause no overflow, and no pause exceeds its bounds`() {
        var random = SeededGenerator(seed: 7)
        let durations: [Duration] = [
            .zero, .seconds(-5), .nanoseconds(1), .seconds(1), .seconds(Int64.max), .seconds(Int64.min),
            .milliseconds(500),
        ]
        let numbers = [Int.min, -1, 0, 1, 2, 63, 64, 1000, .max]
        for base in durations {
            for longest in durations {
                for multiplier in [0, 1, 2, 1e300, .infinity, -.infinity, .nan, -3] {
                    for jitter in [RetryJitter.none, .full, .equal, .decorrelated] {
                        for backoff in [
                            RetryBackoff.exponential(from: base, upTo: longest, multiplier: multiplier, jitter: jitter),
                            .linear(from: base, upTo: longest, jitter: jitter), .constant(base, jitter: jitter),
                        ] {
                            let number = numbers.randomElement(using: &random) ?? 1
                            let chance = [0, 0.5, 0.999, 1, -1, 7, .nan].randomElement(using: &random) ?? 0
                            let previous = durations.randomElement(using: &random)
                            let pause = backoff.pause(after: number, previous: previous, chance: chance)
                            #expect(pause >= .zero)
                            // The precision of a `Double` is limited.
                            let bound = max(backoff.longest, .zero)
                            #expect(pause <= bound + bound / 1_000_000 || bound > .seconds(1_000_000_000))
                        }
                    }
                }
            }
        }
    }
}
