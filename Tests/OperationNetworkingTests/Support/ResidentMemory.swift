// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// How much memory this process has in use.
enum ResidentMemory {
    /// Bytes that are in memory now; zero where the system does not tell in this way.
    static var bytes: Int {
        guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else { return 0 }
        let fields = text.split(separator: " ")
        return fields.count > 1 ? (Int(fields[1]) ?? 0) * Int(getpagesize()) : 0
    }

    /// The most bytes that were in memory at once since ``forgetPeak()``; zero where the system does not tell.
    static var peak: Int {
        guard let text = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
            let line = text.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") })
        else { return 0 }
        return (line.split(separator: " ").compactMap { Int($0) }.first ?? 0) << 10
    }

    /// Lets the peak begin anew.
    static func forgetPeak() throws {
        #if os(Linux)
            try "5".write(toFile: "/proc/self/clear_refs", atomically: false, encoding: .utf8)
        #endif
    }
}
