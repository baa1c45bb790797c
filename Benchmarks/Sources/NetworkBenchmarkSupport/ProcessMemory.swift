// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The memory of a process, according to the system.
package enum ProcessMemory {
    /// Returns a value from `/proc/…/status` in bytes, or 0 if the value is missing.
    package static func bytes(_ name: String, of process: String = "self") -> Int {
        let text = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix("\(name):") }
        return (line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0) << 10
    }
}
