// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import OperationTestKit

extension LoopbackAnswer {
    /// Returns a response with a small compressed body that decompresses to about `count` zero bytes.
    ///
    /// The server creates the body in constant memory. For example, the server sends one gigabyte of zeros as about one
    /// megabyte.
    static func bomb(count: Int) -> Self {
        let bomb = GzipZeros(count: count)
        return Self(
            .head(
                200, ["Content-Encoding": "gzip", "Content-Type": "text/plain", "Content-Length": "\(bomb.size)"]),
            .send(bomb.head), .send(repeating: [0], count: bomb.zeroBytes), .send(bomb.tail))
    }
}

/// Zeros that are compressed as far as the format allows, so that each zero byte represents 1,032 zeros.
private struct GzipZeros {
    /// The first bytes, with the header and the table of a code in which the longest repetition takes two bits.
    let head: [UInt8]
    /// The number of zero bytes that follow.
    let zeroBytes: Int
    let tail: [UInt8]

    var size: Int { head.count + zeroBytes + tail.count }

    /// Creates about `count` zeros, at least one, with a difference of at most 1,032.
    init(count: Int) {
        var bits = BitWriter()
        // The last block has its own code: literal 0 (2 bits), end (2 bits), length 258 (1 bit), distance 1.
        bits.write(1, 1)
        bits.write(2, 2)
        bits.write(286 - 257, 5)
        bits.write(0, 5)
        bits.write(19 - 4, 4)
        // The lengths of the code length code, in the format's special order: 1 → 2 bits, 2 → 2, 18 → 1.
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
        // The codes are 0 for length 258, 10 for literal 0 and 11 for the end. The bits of a code are in order.
        bits.write(0b01, 2)
        // Enough repetitions to align the following data to a byte.
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
            [0b11] + Gzip.littleEndian(Self.checksum(zeros: total))
            + Gzip.littleEndian(UInt32(truncatingIfNeeded: total))
    }

    /// Returns the CRC-32 of zeros by repeated squaring, in a time that does not grow with their number.
    private static func checksum(zeros count: Int) -> UInt32 {
        // A zero byte transforms the register by a matrix over GF(2), whose column n is the image of bit n.
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
}

private struct BitWriter {
    private(set) var bytes: [UInt8] = []
    private var used = 0

    var isAligned: Bool { used == 0 }

    /// Writes the low bits of a value, beginning with the lowest bit.
    mutating func write(_ value: UInt32, _ count: Int) {
        for bit in 0..<count {
            if used == 0 { bytes.append(0) }
            bytes[bytes.count - 1] |= UInt8(value >> bit & 1) << used
            used = (used + 1) % 8
        }
    }
}
