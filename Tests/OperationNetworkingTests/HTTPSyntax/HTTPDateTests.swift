// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct HTTPDateTests {
    private let now = Date(timeIntervalSince1970: 1_750_000_000)  // June 2025

    @Test(arguments: [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777.0), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
        ("Sun Nov  6 08:49:37 1994", 784_111_777), ("sun, 06 nov 1994 08:49:37 UTC", 784_111_777),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Tue, 29 Feb 2000 23:59:60 GMT", 951_868_800),
        ("Friday, 01-Jan-75 00:00:00 GMT", 3_313_526_400), ("Friday, 01-Jan-76 00:00:00 GMT", 189_302_400),
    ])
    func `each of the three HTTP date formats is parsed`(text: String, seconds: Double) {
        #expect(HTTPDate.parse(text, now: now)?.timeIntervalSince1970 == seconds)
    }

    @Test(arguments: [
        "", "0", "-1", "never", "Sun, 06 Nov 1994 08:49:37 PST", "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 94 08:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT",
        "Sun, 29 Feb 1900 00:00:00 GMT", "Sun, 06 Nov 1994 8:49:37 GMT", "Sun 06 Nov 1994 08:49:37 GMT", "a b c d e f",
        "Sun, 99999999999999999999 Nov 1994 08:49:37 GMT",
    ])
    func `an invalid HTTP date is rejected`(text: String) {
        #expect(HTTPDate.parse(text, now: now) == nil)
    }

    @Test func `a formatted date is parsed as the same date, from year 1 to 9999`() {
        var generator = SeededGenerator(seed: 5322)
        for _ in 0..<5_000 {
            let date = Date(
                timeIntervalSince1970: Double(Int.random(in: -62_135_596_800...253_402_300_799, using: &generator)))
            #expect(HTTPDate.parse(HTTPDate.text(date), now: now) == date)
        }
        #expect(HTTPDate.text(Date(timeIntervalSince1970: 784_111_777.9)) == "Sun, 06 Nov 1994 08:49:37 GMT")
    }

    @Test func `calendar dates match those of Foundation`() throws {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = try #require(TimeZone(secondsFromGMT: 0))
        for days in stride(from: -100_000, to: 100_000, by: 37) {
            let parts = calendar.dateComponents(
                [.year, .month, .day], from: Date(timeIntervalSince1970: Double(days) * 86_400))
            let ours = CivilDate.date(days: days)
            // Before 1582, Foundation uses the Julian calendar.
            #expect(ours.year == parts.year && ours.month == parts.month && ours.day == parts.day)
            #expect(CivilDate.days(year: ours.year, month: ours.month, day: ours.day) == days)
        }
    }
}
