// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

extension HTTPDate {
    /// Returns a date as HTTP writes it, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
    static func text(_ date: Date) -> String {
        let seconds = Int(date.timeIntervalSince1970.rounded(.down))
        let days = Int((Double(seconds) / 86_400).rounded(.down))
        let (year, month, day) = CivilDate.date(days: days)
        let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][(days % 7 + 7) % 7]
        let rest = seconds - days * 86_400
        let clock = String(format: "%02d:%02d:%02d", rest / 3600, rest / 60 % 60, rest % 60)
        return "\(weekday), \(String(format: "%02d", day)) \(CivilDate.months[month - 1].capitalized) "
            + "\(String(format: "%04d", year)) \(clock) GMT"
    }
}
