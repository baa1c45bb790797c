// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Takes bytes as they come apart into lines.
struct LineSplitter: Sendable {
    private static let longest = 1 << 20

    private var bytes: [UInt8] = []
    /// Where the next line begins.
    private var start = 0
    /// Up to where there is no end of a line.
    private var searched = 0
    private var endedByReturn = false

    /// Whether what is left is no longer than a line may be.
    var isWithinBounds: Bool { bytes.count - start <= Self.longest }

    mutating func add(_ data: Data) {
        if start > 0 {
            bytes.removeFirst(start)
            searched -= start
            start = 0
        }
        bytes.append(contentsOf: data)
    }

    /// The next line, if its end came.
    mutating func next() -> String? {
        // The line feed after a carriage return belongs to it, even if it came later.
        if endedByReturn, start < bytes.count {
            endedByReturn = false
            if bytes[start] == 10 {
                start += 1
                searched = max(searched, start)
            }
        }
        while searched < bytes.count {
            let byte = bytes[searched]
            searched += 1
            guard byte == 10 || byte == 13 else { continue }
            let line = String(decoding: bytes[start..<searched - 1], as: UTF8.self)
            start = searched
            endedByReturn = byte == 13
            return line
        }
        return nil
    }

    /// What is left at the end, if it is not nothing.
    mutating func rest() -> String? {
        defer {
            start = bytes.count
            searched = bytes.count
        }
        return start < bytes.count ? String(decoding: bytes[start...], as: UTF8.self) : nil
    }
}
