// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct SeededGeneratorTests {
    /// The numbers come from the reference implementation of SplitMix64, so that a failing seed fails on every system.
    @Test func `a seeded generator produces the numbers of SplitMix64`() {
        var zero = SeededGenerator(seed: 0)
        #expect(
            (0..<3).map { _ in zero.next() } == [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F])
        var other = SeededGenerator(seed: 1_234_567)
        let expected: [UInt64] = [
            6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423,
            4_593_380_528_125_082_431, 16_408_922_859_458_223_821,
        ]
        #expect((0..<5).map { _ in other.next() } == expected)
    }

    @Test func `equal seeds give equal choices, and different seeds give different choices`() {
        func choices(_ seed: UInt64) -> [Int] {
            var generator = SeededGenerator(seed: seed)
            return (0..<50).map { _ in Int.random(in: 0..<1_000, using: &generator) }
        }
        #expect(choices(7) == choices(7))
        #expect(choices(7) != choices(8))
    }

    @Test func `chance is true about as often as requested`() {
        var generator = SeededGenerator(seed: 3)
        let hits = (0..<10_000).count { _ in generator.chance(1, in: 4) }
        #expect((2_300...2_700).contains(hits))
        #expect((0..<100).allSatisfy { _ in generator.chance(4, in: 4) })
        #expect(!(0..<100).contains { _ in generator.chance(0, in: 4) })
    }
}
