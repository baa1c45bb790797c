// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What a server asks for with `Retry-After` (RFC 9110, section 10.2.3): a number of seconds, or a date.
enum RetryAfter {
    /// How long to wait from now on; nil if the field is missing or is neither, and the longest if there are several.
    ///
    /// A date is compared with the response's own `Date`, so that a clock that is wrong, theirs or ours, does no harm.
    static func pause(in head: ResponseHead, now: Date) -> Duration? {
        head.headers.values("Retry-After").compactMap { pause($0, in: head, now: now) }.max()
    }

    private static func pause(_ field: String, in head: ResponseHead, now: Date) -> Duration? {
        let text = field.trimmingCharacters(in: .whitespaces)
        guard !text.isEmpty else { return nil }
        if text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            // A number that is too large for us is too long for everybody.
            return .seconds(Int64(text) ?? .max)
        }
        guard let date = HTTPDate.parse(text, now: now) else { return nil }
        let theirs = head.headers["Date"].flatMap { HTTPDate.parse($0, now: now) } ?? now
        return .seconds(max(date.timeIntervalSince(theirs), 0))
    }
}
