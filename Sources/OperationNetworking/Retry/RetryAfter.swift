// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What a server asks for with `Retry-After` (RFC 9110, section 10.2.3): a number of seconds, or a date.
enum RetryAfter {
    /// How long to wait from now on; nil if the field is missing or is neither.
    ///
    /// A date is compared with the response's own `Date`, so that a clock that is wrong, theirs or ours, does no harm.
    static func pause(in head: ResponseHead, now: Date) -> Duration? {
        guard let text = head.headers["Retry-After"]?.trimmingCharacters(in: .whitespaces), !text.isEmpty else {
            return nil
        }
        if text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            // A number that is too large for us is too long for everybody.
            return .seconds(Int64(text) ?? .max)
        }
        guard let date = HTTPDate.parse(text, now: now) else { return nil }
        let theirs = head.headers["Date"].flatMap { HTTPDate.parse($0, now: now) } ?? now
        return .seconds(max(date.timeIntervalSince(theirs), 0))
    }
}
