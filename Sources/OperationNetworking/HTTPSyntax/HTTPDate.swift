// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The date format of HTTP (RFC 9110, section 5.6.7), which has three forms.
package enum HTTPDate {
    /// The end of the year 9999, in seconds since 1970.
    private static let latest = 253_402_300_799.0

    /// Parses a date in any of the three forms, or returns `nil` for any other text.
    ///
    /// - Parameters:
    ///   - text: The date, with nothing before or after it except blanks.
    ///   - now: The current date, which completes a two-digit year to a year that is at most 50 years in the future.
    package static func parse(_ text: String, now: Date) -> Date? {
        let words = text.split { $0 == " " || $0 == "\t" }.map(String.init)
        // Recipients should be lenient about the name of the day, which is redundant.
        switch words.count {
        case 6: return fixed(words)
        case 4: return obsolete(words, now: now)
        case 5: return asctime(words)
        default: return nil
        }
    }

    // Sun, 06 Nov 1994 08:49:37 GMT
    private static func fixed(_ words: [String]) -> Date? {
        guard words[0].utf8.count == 4, words[0].hasSuffix(","), isZone(words[5]), words[3].utf8.count == 4 else {
            return nil
        }
        return moment(year: number(words[3]), month: words[2], day: number(words[1]), clock: words[4])
    }

    // Sunday, 06-Nov-94 08:49:37 GMT
    private static func obsolete(_ words: [String], now: Date) -> Date? {
        let parts = words[1].split(separator: "-", omittingEmptySubsequences: false).map(String.init)
        guard words[0].hasSuffix(","), isZone(words[3]), parts.count == 3, parts[2].utf8.count == 2,
            let twoDigits = number(parts[2])
        else { return nil }
        let seconds = min(latest, max(-latest, now.timeIntervalSince1970))
        let present = CivilDate.date(days: Int((seconds / 86_400).rounded(.down))).year
        var year = present / 100 * 100 + twoDigits
        if year > present + 50 { year -= 100 }
        return moment(year: year, month: parts[1], day: number(parts[0]), clock: words[2])
    }

    // Sun Nov  6 08:49:37 1994
    private static func asctime(_ words: [String]) -> Date? {
        guard words[0].utf8.count == 3, words[4].utf8.count == 4 else { return nil }
        return moment(year: number(words[4]), month: words[1], day: number(words[2]), clock: words[3])
    }

    private static func moment(year: Int?, month: String, day: Int?, clock: String) -> Date? {
        let parts = clock.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3, parts.allSatisfy({ $0.utf8.count == 2 }), let hour = number(parts[0]),
            let minute = number(parts[1]), let second = number(parts[2]), let year, let day,
            let month = CivilDate.months.firstIndex(of: month.asciiLowercased)
        else { return nil }
        return CivilDate.moment(
            year: year, month: month + 1, day: day, hour: hour, minute: minute, second: second)
    }

    private static func isZone(_ word: String) -> Bool { ["GMT", "UTC"].contains(word) }

    private static func number(_ text: String) -> Int? {
        guard !text.isEmpty, text.utf8.count <= 4, text.utf8.allSatisfy(\.isDigit) else { return nil }
        return Int(text)
    }
}

/// Calendar calculations that are fast and do not depend on the calendars of Foundation.
package enum CivilDate {
    /// The names of the months as HTTP writes them.
    package static let months = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]

    /// Returns the number of days from 1 January 1970 to a day, or `nil` if the day does not exist.
    package static func days(year: Int, month: Int, day: Int) -> Int? {
        guard (1...12).contains(month), day >= 1, day <= length(of: month, in: year) else { return nil }
        // Years begin in March here, so that a leap day is the last day of its year. An era has 400 years.
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    /// Returns the day that is a number of days after 1 January 1970.
    package static func date(days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    }

    /// Returns the date of an hour, minute and second of a day, or `nil` if there is no such time.
    package static func moment(
        year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int
    ) -> Date? {
        guard let days = days(year: year, month: month, day: day), (0...23).contains(hour),
            (0...59).contains(minute), (0...60).contains(second)
        else { return nil }
        // `Int` has 32 bits on Apple Watch, where this sum would overflow after 19 January 2038.
        let seconds = Int64(days) * 86_400 + Int64(hour * 3600 + minute * 60 + second)
        return Date(timeIntervalSince1970: Double(seconds))
    }

    private static func length(of month: Int, in year: Int) -> Int {
        let isLeapYear = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        return month == 2 && isLeapYear ? 29 : [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]
    }
}

extension Duration {
    /// The duration in seconds with three decimals, for a log.
    var inSeconds: String {
        let milliseconds = (max(self, .zero).saturatedNanoseconds.magnitude + 500_000) / 1_000_000
        let decimals = String(milliseconds % 1_000 + 1_000).dropFirst()
        return "\(milliseconds / 1_000).\(decimals) s"
    }

    /// The duration in seconds, for Foundation.
    var seconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}
