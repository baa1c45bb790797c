// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Bytes of any number that look random, and of which each can be told by its place: to see that a transfer neither
/// loses, doubles nor swaps any.
public enum TestPattern {
    /// After so many bytes the pattern begins anew; a prime, so that no block size of anybody hides an error.
    public static let period = 65_521

    /// The bytes of one period.
    public static let block: [UInt8] = {
        var generator = SeededGenerator(seed: 1)
        return (0..<period).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
    }()

    /// The bytes from a place on.
    public static func bytes(from offset: Int = 0, count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        while bytes.count < count {
            let start = (offset + bytes.count) % period
            bytes += block[start..<min(period, start + count - bytes.count)]
        }
        return bytes
    }

    /// Whether these are the bytes of the pattern from a place on.
    public static func matches(_ bytes: UnsafeRawBufferPointer, from offset: Int = 0) -> Bool {
        block.withUnsafeBytes { block in
            var done = 0
            while done < bytes.count, let left = bytes.baseAddress, let right = block.baseAddress {
                let start = (offset + done) % period
                let size = min(period - start, bytes.count - done)
                if memcmp(left + done, right + start, size) != 0 { return false }
                done += size
            }
            return true
        }
    }

    /// Whether these are the bytes of the pattern from a place on.
    public static func matches(_ bytes: [UInt8], from offset: Int = 0) -> Bool {
        bytes.withUnsafeBytes { matches($0, from: offset) }
    }
}
