// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A namespace for functions that format numbers of bytes, rates and times in a few columns.
public enum QuantityText {
    private static let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"]

    /// Returns a number of bytes with three digits, such as `1.23 MB`, in at most 7 columns.
    ///
    /// A kilobyte is 1,000 bytes.
    public static func bytes(_ count: Int64) -> String { scaled(Double(max(count, 0))) }

    /// Returns a rate, such as `12.3 MB/s`, in at most 9 columns.
    public static func rate(_ bytesPerSecond: Double) -> String { scaled(bytesPerSecond) + "/s" }

    private static func scaled(_ value: Double) -> String {
        var value = value.isFinite ? max(value, 0) : 0
        guard value >= 999.5 else { return "\(Int(value.rounded())) B" }
        var unit = 0
        // A value that would be rounded to 1,000 uses the next unit.
        while value >= 999.5, unit < units.count - 1 {
            value /= 1_000
            unit += 1
        }
        return "\(digits(value)) \(units[unit])"
    }

    /// Returns three digits of a number from 0.9995 to 999.4.
    private static func digits(_ value: Double) -> String {
        if value < 9.995 { return fixed(value, places: 2) }
        if value < 99.95 { return fixed(value, places: 1) }
        return "\(Int(min(value, 999_999).rounded()))"
    }

    private static func fixed(_ value: Double, places: Int) -> String {
        let scale = places == 2 ? 100 : 10
        let number = Int((value * Double(scale)).rounded())
        let fraction = String(number % scale)
        return "\(number / scale)." + String(repeating: "0", count: places - fraction.count) + fraction
    }

    /// Returns a remaining time, such as `0:07`, `12:34`, `1:02:03` or `4 d`, in at most 8 columns.
    public static func time(_ duration: Duration) -> String {
        let (whole, fraction) = duration.components
        let seconds = max(min(whole, .max - 1) + (fraction > 0 ? 1 : 0), 0)
        let (minutes, hours) = (seconds / 60 % 60, seconds / 3_600)
        if hours >= 100 { return hours / 24 > 9_999 ? "∞" : "\(hours / 24) d" }
        guard hours > 0 else { return "\(minutes):\(twoDigits(seconds % 60))" }
        return "\(hours):\(twoDigits(minutes)):\(twoDigits(seconds % 60))"
    }

    /// Returns an elapsed time, such as `0.4 s`, `12 s` or `2:05`.
    public static func elapsed(_ duration: Duration) -> String {
        let (seconds, attoseconds) = duration.components
        if seconds >= 60 { return time(.seconds(seconds)) }
        if seconds >= 10 { return "\(seconds) s" }
        return "\(max(seconds, 0)).\(max(attoseconds, 0) / 100_000_000_000_000_000) s"
    }

    /// Returns a percentage, such as `45%`, in at most 4 columns.
    ///
    /// The result is 100% only if nothing is missing.
    public static func percent(_ completed: Int64, of total: Int64) -> String {
        guard total > 0, completed < total else { return "100%" }
        return "\(Int(max(Double(completed), 0) / Double(total) * 100))%"
    }

    private static func twoDigits(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
