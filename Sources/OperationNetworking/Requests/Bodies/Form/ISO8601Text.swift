// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Dates as ISO 8601 and RFC 3339 have them.
enum ISO8601Text {
    /// In whole seconds, in the time of Greenwich.
    static func text(_ date: Date) -> String {
        let limits = (-62_135_596_800.0, 253_402_300_799.0)
        let seconds = Int64(min(max(date.timeIntervalSince1970, limits.0), limits.1).rounded(.down))
        let days = Int((Double(seconds) / 86_400).rounded(.down))
        let rest = Int(seconds - Int64(days) * 86_400)
        let (year, month, day) = CivilDate.date(days: days)
        let date = [padded(year, 4), padded(month, 2), padded(day, 2)].joined(separator: "-")
        let time = [rest / 3600, rest / 60 % 60, rest % 60].map { padded($0, 2) }.joined(separator: ":")
        return "\(date)T\(time)Z"
    }

    private static func padded(_ number: Int, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
}
