// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The memory that this process uses.
enum ResidentMemory {
    /// The bytes of resident memory, or 0 if the system does not report them.
    static var bytes: Int {
        guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else { return 0 }
        let fields = text.split(separator: " ")
        return fields.count > 1 ? (Int(fields[1]) ?? 0) * Int(getpagesize()) : 0
    }

    /// The peak of resident bytes since ``forgetPeak()``, or 0 if the system does not report it.
    static var peak: Int {
        guard let text = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
            let line = text.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") })
        else { return 0 }
        return (line.split(separator: " ").compactMap { Int($0) }.first ?? 0) << 10
    }

    /// Resets the peak.
    static func forgetPeak() throws {
        #if os(Linux)
            try "5".write(toFile: "/proc/self/clear_refs", atomically: false, encoding: .utf8)
        #endif
    }
}
