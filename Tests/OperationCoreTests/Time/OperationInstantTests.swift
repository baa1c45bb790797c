// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationCore
import Testing

@Suite(.timeLimit(.minutes(3)))
struct OperationInstantTests {
    private func instant(_ seconds: Int64) -> OperationInstant { OperationInstant(offset: .seconds(seconds)) }

    @Test func `instants are ordered, and their differences are durations`() {
        #expect(instant(1) < instant(2))
        #expect(!(instant(2) < instant(2)))
        #expect(instant(2) == OperationInstant(offset: .milliseconds(2_000)))
        #expect(instant(2).duration(to: instant(5)) == .seconds(3))
        #expect(instant(5).duration(to: instant(2)) == .seconds(-3))
        #expect(instant(2).advanced(by: .milliseconds(1)) == OperationInstant(offset: .milliseconds(2_001)))
        #expect(instant(2).advanced(by: .seconds(-7)) == instant(-5))
        #expect(instant(1).description == "1.0 seconds")
        #expect(Set([instant(1), instant(1), instant(2)]).count == 2)
    }

    @Test func `an instant beyond the last instant becomes the last instant`() {
        let last = OperationInstant.distantFuture
        #expect(last.advanced(by: .nanoseconds(1)) == last)
        #expect(last.advanced(by: .seconds(Int64.max)) == last)
        #expect(instant(Int64.max - 1).advanced(by: .seconds(2)) == last)
        #expect(instant(0).advanced(by: .seconds(Int64.max) + .seconds(Int64.max)) == last)
        #expect(last.advanced(by: .seconds(-1)) < last)
        let first = instant(0).advanced(by: .seconds(Int64.min))
        #expect(first.advanced(by: .seconds(-1)) == first)
        #expect(first.advanced(by: .seconds(Int64.min) + .seconds(Int64.min)) == first)
    }

    @Test func `durations between extreme instants do not overflow`() {
        let last = OperationInstant.distantFuture, first = instant(Int64.min)
        #expect(first.duration(to: last) == .seconds(Int64.max))
        #expect(last.duration(to: first) == .seconds(-Int64.max))
        #expect(last.duration(to: last) == .zero)
        let beyond = OperationInstant(offset: .seconds(Int64.max) + .seconds(Int64.max))
        #expect(instant(0).duration(to: beyond) == .seconds(Int64.max))
        #expect(beyond.advanced(by: .zero) == last)
    }

    @Test func `nanoseconds out of range become the largest or smallest value`() {
        #expect(Duration.seconds(2).saturatedNanoseconds == 2_000_000_000)
        #expect(Duration.nanoseconds(-3).saturatedNanoseconds == -3)
        #expect(Duration.milliseconds(-1_500).saturatedNanoseconds == -1_500_000_000)
        #expect(Duration.seconds(Int64.max).saturatedNanoseconds == .max)
        #expect(Duration.seconds(Int64.min).saturatedNanoseconds == .min)
        #expect((Duration.seconds(Int64.max) + .seconds(Int64.max)).saturatedNanoseconds == .max)
        #expect(Duration.nanoseconds(Int64.max).saturatedNanoseconds == .max)
        #expect(Duration.nanoseconds(Int64.max - 1).saturatedNanoseconds == .max - 1)
        #expect((Duration.nanoseconds(Int64.max) + .nanoseconds(1)).saturatedNanoseconds == .max)
        #expect((Duration.nanoseconds(Int64.min) - .nanoseconds(1)).saturatedNanoseconds == .min)
    }
}
