// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// How values are told in the texts of expectations.
enum Told {
    private static let longest = 400

    /// An operation by its name, by its request, or by its type.
    static func subject(_ operation: ManagedOperation) -> String {
        if let name = operation.name, !name.isEmpty { return name }
        if let request = (operation as? any AnyNetworkOperation)?.request { return "\(request.summary)" }
        return "\(type(of: operation))"
    }

    static func value(_ value: Any) -> String {
        let text = value is String ? "\"\(value)\"" : "\(value)"
        return text.count > longest ? "\(text.prefix(longest))… (\(text.count) characters)" : text
    }

    /// An error by what tells it from others, and its sentence.
    static func error(_ error: any Error) -> String {
        guard let error = error as? NetworkError else { return value(error) }
        return "\(error.code)\(error.status.map { " \($0)" } ?? ""), \(error.message)"
    }

    /// `250 ms`, `1.5 s`, `1 min 30 s`.
    static func time(_ duration: Duration) -> String {
        let (whole, part) = duration.saturatedNanoseconds.quotientAndRemainder(dividingBy: 1_000_000)
        let milliseconds = whole + (part >= 500_000 ? 1 : 0)
        if milliseconds < 1_000 { return "\(milliseconds) ms" }
        let (minutes, rest) = (milliseconds / 60_000, milliseconds % 60_000)
        let (seconds, thousandths) = (rest / 1_000, rest % 1_000)
        var decimals = String(String(thousandths + 1_000).dropFirst())
        while decimals.hasSuffix("0") { decimals.removeLast() }
        let short = "\(seconds)\(decimals.isEmpty ? "" : ".\(decimals)") s"
        if minutes == 0 { return short }
        return rest == 0 ? "\(minutes) min" : "\(minutes) min \(short)"
    }
}
