// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

/// Gzip bodies that can be made without a compressor.
public enum Gzip {
    private static let header: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255]

    /// Bytes in the frame of gzip, not compressed: right, and understood by everybody.
    public static func stored(_ bytes: [UInt8]) -> [UInt8] {
        var packed = header
        var rest = bytes[...]
        repeat {
            let piece = rest.prefix(65_535)
            rest = rest.dropFirst(piece.count)
            let size = UInt16(piece.count)
            packed.append(rest.isEmpty ? 1 : 0)
            packed += littleEndian(UInt32(size) | UInt32(~size) << 16)
            packed += piece
        } while !rest.isEmpty
        return packed + CRC32.checksum(of: bytes, startingWith: CRC32()).reversed()
            + littleEndian(UInt32(truncatingIfNeeded: bytes.count))
    }

    /// Zeros, compressed as far as the format allows: each zero byte on the wire stands for 1,032 of them.
    struct Zeros {
        /// What is sent first: the frame, and the table of a code in which the longest repetition takes two bits.
        let head: [UInt8]
        /// How many zero bytes follow.
        let zeroBytes: Int
        let tail: [UInt8]

        var size: Int { head.count + zeroBytes + tail.count }

        /// About `count` zeros: at least one, and up to 1,032 more or less.
        init(count: Int) {
            var bits = BitWriter()
            // The last block, with a code of its own: literal 0 (2 bits), end (2 bits), length 258 (1 bit); distance 1.
            bits.write(1, 1)
            bits.write(2, 2)
            bits.write(286 - 257, 5)
            bits.write(0, 5)
            bits.write(19 - 4, 4)
            // Lengths of the code of the code lengths, in the format's odd order: 1 → 2 bits, 2 → 2, 18 → 1.
            for symbol in [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15] {
                bits.write(symbol == 18 ? 1 : symbol == 1 || symbol == 2 ? 2 : 0, 3)
            }
            let ofOne: UInt32 = 0b01, ofTwo: UInt32 = 0b11
            func skip(_ count: Int) {
                bits.write(0, 1)
                bits.write(UInt32(count - 11), 7)
            }
            bits.write(ofTwo, 2)
            skip(138)
            skip(256 - 1 - 138)
            bits.write(ofTwo, 2)
            skip(285 - 257)
            bits.write(ofOne, 2)
            bits.write(ofOne, 2)
            // The codes: length 258 is 0, literal 0 is 10, the end is 11; bits of a code come first to last.
            bits.write(0b01, 2)
            // So many repetitions that what follows begins with a byte.
            var repetitions = 0
            while !bits.isAligned {
                bits.write(0, 2)
                repetitions += 1
                if repetitions > 4 { break }
            }
            zeroBytes = max(count - 1 - 258 * repetitions, 0) / 1_032
            head = Gzip.header + bits.bytes
            let total = 1 + 258 * repetitions + 1_032 * zeroBytes
            tail =
                [0b11] + Gzip.littleEndian(Gzip.checksum(zeros: total))
                + Gzip.littleEndian(UInt32(truncatingIfNeeded: total))
        }
    }

    private static func littleEndian(_ value: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    /// The CRC-32 of zeros, found by squaring: the time does not grow with their number.
    private static func checksum(zeros count: Int) -> UInt32 {
        // A zero byte maps the register by a matrix over two elements; column n is what it makes of bit n alone.
        var power = (0..<32).map { bit -> UInt32 in
            var value = UInt32(1) << bit
            for _ in 0..<8 { value = value & 1 == 1 ? value >> 1 ^ 0xEDB8_8320 : value >> 1 }
            return value
        }
        func apply(_ matrix: [UInt32], _ value: UInt32) -> UInt32 {
            (0..<32).reduce(0) { value >> $1 & 1 == 1 ? $0 ^ matrix[$1] : $0 }
        }
        var register = UInt32.max
        var left = count
        while left > 0 {
            if left & 1 == 1 { register = apply(power, register) }
            let present = power
            power = present.map { apply(present, $0) }
            left >>= 1
        }
        return ~register
    }

    private struct BitWriter {
        private(set) var bytes: [UInt8] = []
        private var used = 0

        var isAligned: Bool { used == 0 }

        /// Writes the low bits of a value, the lowest first.
        mutating func write(_ value: UInt32, _ count: Int) {
            for bit in 0..<count {
                if used == 0 { bytes.append(0) }
                bytes[bytes.count - 1] |= UInt8(value >> bit & 1) << used
                used = (used + 1) % 8
            }
        }
    }
}
