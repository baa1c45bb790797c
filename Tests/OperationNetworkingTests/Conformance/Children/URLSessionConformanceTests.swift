// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if os(Linux)
    import Foundation
    import OperationCore
    import OperationTestKit
    import Testing

    @Suite(.timeLimit(.minutes(10)), .enabled(if: ConformanceChild.numbers == nil))
    struct URLSessionConformanceTests {
        @Test func `explore`() async throws {
            let all = Array(ConformanceCase.all.indices)
            let parts = (0..<2).map { part in all.filter { $0 % 2 == part } }
            let start = ContinuousClock.now
            async let one = TestThread.run { try ConformanceChild.outcomes(of: parts[0]) }
            async let two = TestThread.run { try ConformanceChild.outcomes(of: parts[1]) }
            let outcomes = try await one.merging(try await two) { $1 }
            for number in all where outcomes[number] != .passed {
                print("EXPLORE \(ConformanceCase.all[number].name) ==> \(outcomes[number]?.line ?? "none")")
            }
            print("EXPLORE took \(start.duration(to: .now)), \(outcomes.values.filter { $0 == .passed }.count) passed")
        }
    }
#endif
