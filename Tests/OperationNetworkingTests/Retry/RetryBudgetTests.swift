// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

struct RetryBudgetTests {
    private let clock = ManualClock()

    private func origin(_ text: String = "http://h.com") throws -> RequestOrigin {
        try #require(RequestOrigin(ofPlain: text))
    }

    @Test func `without first attempts there is only the reserve, which refills with time`() throws {
        let budget = RetryBudget(clock: clock)
        let origin = try origin()
        #expect((0..<20).count { _ in budget.spend(for: origin) } == 10)
        clock.advance(by: .milliseconds(2_500))
        #expect((0..<20).count { _ in budget.spend(for: origin) } == 2)
        clock.advance(by: .milliseconds(500))
        #expect(budget.spend(for: origin))
        clock.advance(by: .seconds(1000))
        #expect(budget.left(for: origin) == 10)
    }

    @Test func `each first attempt earns a fifth of a retry, which expires after ten seconds`() throws {
        let budget = RetryBudget(reserve: 0, refillPerSecond: 0, clock: clock)
        let origin = try origin()
        #expect(!budget.spend(for: origin))
        for _ in 0..<50 { budget.earn(for: origin) }
        #expect(budget.left(for: origin) == 10)
        #expect(budget.spend(for: origin))
        clock.advance(by: .seconds(5))
        for _ in 0..<5 { budget.earn(for: origin) }
        #expect(budget.left(for: origin) == 10)
        clock.advance(by: .seconds(6))
        #expect(budget.left(for: origin) == 1)
        clock.advance(by: .seconds(6))
        #expect(budget.left(for: origin) == 0)
    }

    @Test func `origins have separate budgets, and unused origins are forgotten`() throws {
        let budget = RetryBudget(clock: clock)
        let (first, second) = (try origin(), try origin("https://h.com"))
        for _ in 0..<10 { _ = budget.spend(for: first) }
        #expect(!budget.spend(for: first))
        #expect(budget.spend(for: second))
        clock.advance(by: .seconds(3))
        for number in 0..<10_000 {
            clock.advance(by: .milliseconds(1))
            _ = budget.spend(for: try origin("http://h\(number).com"))
        }
        // Recent spending is still remembered.
        #expect(budget.left(for: try origin("http://h9999.com")) == 9)
        // At most the origins of the last seconds, and as many again before the next cleanup.
        #expect(budget.originCount < 3_000)
        clock.advance(by: .seconds(100))
        for number in 0..<40_000 where budget.originCount > 200 {
            clock.advance(by: .seconds(20))
            _ = budget.left(for: try origin("http://x\(number).com"))
        }
        #expect(budget.originCount <= 200)
    }

    @Test(arguments: [1, 2, 3, 4, 5])
    func `with a failing server, retries add at most a fifth of the load and the reserve`(seed: UInt64) throws {
        let budget = RetryBudget(clock: clock)
        let origin = try origin()
        var random = SeededGenerator(seed: seed)
        var (first, again) = (0, 0)
        for _ in 0..<60_000 {
            clock.advance(by: .milliseconds(1))
            if Int.random(in: 0..<5, using: &random) == 0 {
                budget.earn(for: origin)
                first += 1
            }
            // Each attempt fails, and each would be sent again.
            if Int.random(in: 0..<5, using: &random) == 0, budget.spend(for: origin) { again += 1 }
        }
        #expect(Double(again) <= Double(first) * 0.2 + 10 + 60 + 1)
        #expect(again > first / 10)
    }

    @Test func `a refund returns the spent amount, but not more`() throws {
        let budget = RetryBudget(reserve: 2, refillPerSecond: 0, clock: clock)
        let origin = try origin()
        for _ in 0..<5 { budget.earn(for: origin) }
        #expect(budget.left(for: origin) == 3)
        for _ in 0..<3 { #expect(budget.spend(for: origin)) }
        for left in 1...3 {
            budget.refund(for: origin)
            #expect(budget.left(for: origin) == left)
        }
        clock.advance(by: .seconds(20))
        #expect(budget.left(for: origin) == 2)
    }

    @Test func `each URL that can be requested has a budget`() throws {
        let budget = RetryBudget(clock: clock)
        for text in ["http://[::1]:8080/a", "http://u:p@h.com/#x", "HTTP://H.com:80/é", "https://h.com?q=a b"] {
            let url = try #require(URL(string: text.replacingOccurrences(of: " ", with: "%20")))
            #expect(budget.left(for: url) == 10, "\(text)")
        }
        #expect(budget.left(for: URL(fileURLWithPath: "/")) == nil)
        _ = budget.spend(for: try origin())
        #expect(budget.left(for: try #require(URL(string: "http://u:p@h.com/#x"))) == 9)
    }

    @Test func `a spent reserve that does not refill is remembered for an hour after its last use`() throws {
        let budget = RetryBudget(reserve: 1, refillPerSecond: 0, clock: clock)
        for number in 0..<500 { #expect(budget.spend(for: try origin("http://h\(number).com"))) }
        clock.advance(by: .seconds(3000))
        #expect(!budget.spend(for: try origin("http://h7.com")))
        clock.advance(by: .seconds(700))
        for number in 0..<1000 { _ = budget.left(for: try origin("http://x\(number).com")) }
        #expect(budget.originCount < 1500)
        #expect(!budget.spend(for: try origin("http://h7.com")))
        #expect(budget.spend(for: try origin("http://h8.com")))
    }

    @Test func `invalid settings cause neither a crash nor a negative budget`() throws {
        let origin = try origin()
        for share in [-1, .nan, .infinity, 1e300] {
            let budget = RetryBudget(
                share: share, window: .seconds(-1), reserve: -5, refillPerSecond: share, clock: clock)
            budget.earn(for: origin)
            _ = budget.spend(for: origin)
            clock.advance(by: .seconds(Int64.max / 4))
            #expect(budget.left(for: origin) >= 0)
        }
    }
}
