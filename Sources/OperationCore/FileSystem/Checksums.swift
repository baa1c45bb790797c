// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// A checksum of a file, together with its algorithm.
public struct FileChecksum: Sendable, Hashable, CustomStringConvertible {
    /// The algorithm that produced the checksum.
    public let algorithm: ChecksumAlgorithm
    /// The bytes of the checksum, with the most significant byte first.
    public let bytes: [UInt8]

    /// Creates a checksum from its bytes.
    ///
    /// - Parameters:
    ///   - algorithm: The algorithm that computed the checksum.
    ///   - bytes: The bytes of the checksum. The initializer does not check their number.
    public init(algorithm: ChecksumAlgorithm, bytes: [UInt8]) {
        self.algorithm = algorithm
        self.bytes = bytes
    }

    /// Creates a checksum from its hexadecimal digits in upper or lower case, or returns `nil` if the text is not
    /// valid.
    ///
    /// The text is not valid if it contains a character that is not a hexadecimal digit, or if its length does not
    /// match the algorithm.
    ///
    /// - Parameters:
    ///   - algorithm: The algorithm that computed the checksum, which determines the number of digits.
    ///   - text: The digits, two for each byte, without spaces or separators.
    public init?(algorithm: ChecksumAlgorithm, hexadecimal text: String) {
        let digits = text.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
        var nothing = algorithm.makeStream()
        guard digits.count == text.utf8.count, digits.count == nothing.finish().count * 2 else { return nil }
        self.algorithm = algorithm
        bytes = stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] * 16 + digits[$0 + 1]) }
    }

    /// The bytes of the checksum as hexadecimal digits in lower case.
    public var hexadecimal: String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// The bytes of the checksum as hexadecimal digits in lower case.
    public var description: String { hexadecimal }
}

/// An algorithm that computes a checksum.
public struct ChecksumAlgorithm: Sendable, Hashable, CustomStringConvertible {
    private enum Kind: String { case sha256, sha1, md5, crc32 }

    private let kind: Kind

    /// The name of the algorithm, as it is used in command-line tools and headers.
    public var description: String { kind.rawValue }

    /// The SHA-256 algorithm (FIPS 180-4), which is the recommended algorithm.
    public static let sha256 = ChecksumAlgorithm(kind: .sha256)
    /// The SHA-1 algorithm, which detects accidental changes but does not protect against forgery.
    ///
    /// Use this algorithm only if no other checksum of the file is known.
    public static let sha1 = ChecksumAlgorithm(kind: .sha1)
    /// The MD5 algorithm, which detects accidental changes but does not protect against forgery.
    ///
    /// Use this algorithm only if no other checksum of the file is known.
    public static let md5 = ChecksumAlgorithm(kind: .md5)
    /// The CRC-32 algorithm of ZIP, gzip and PNG, which is fast and detects only accidental changes.
    public static let crc32 = ChecksumAlgorithm(kind: .crc32)

    /// Returns a new stream that computes a checksum.
    package func makeStream() -> any ChecksumStream {
        switch kind {
        case .sha256: SHA256()
        case .sha1: SHA1()
        case .md5: MD5()
        case .crc32: CRC32()
        }
    }
}

/// A checksum that is computed while the bytes arrive.
package protocol ChecksumStream: Sendable {
    /// Adds bytes to the checksum.
    mutating func update(_ bytes: UnsafeRawBufferPointer)

    /// Returns the checksum of all bytes, after which no bytes may be added.
    mutating func finish() -> [UInt8]
}

extension ChecksumStream {
    /// Returns the checksum of a complete sequence of bytes.
    package static func checksum(of bytes: some Sequence<UInt8>, startingWith stream: Self) -> [UInt8] {
        var stream = stream
        Array(bytes).withUnsafeBytes { stream.update($0) }
        return stream.finish()
    }
}

/// A hash that mixes blocks of 64 bytes into a few words, and then the number of bits, as SHA-256, SHA-1 and MD5 do.
package struct BlockHash<Mixing: BlockMixing>: ChecksumStream {
    private static var blockSize: Int { 64 }

    private var mixing = Mixing()
    /// The bytes that do not yet fill a block.
    private var pending: [UInt8] = []
    private var count: UInt64 = 0

    package init() {
        pending.reserveCapacity(2 * Self.blockSize)
    }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        count &+= UInt64(bytes.count)
        var rest = bytes
        if !pending.isEmpty {
            let part = rest.prefix(Self.blockSize - pending.count)
            pending.append(contentsOf: part)
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(part.count))
            if pending.count == Self.blockSize { mixPending() }
        }
        let whole = rest.count / Self.blockSize
        if whole > 0, let start = rest.baseAddress { mixing.mix(start, blocks: whole) }
        pending.append(contentsOf: rest.dropFirst(whole * Self.blockSize))
    }

    package mutating func finish() -> [UInt8] {
        let bits = count &<< 3
        pending.append(0x80)
        let used = pending.count + 8
        let padding = (Self.blockSize - used % Self.blockSize) % Self.blockSize
        pending.append(contentsOf: repeatElement(0, count: padding))
        let length = Mixing.isBigEndian ? bits.bigEndian : bits.littleEndian
        withUnsafeBytes(of: length) { pending.append(contentsOf: $0) }
        mixPending()
        let words = mixing.words.map { Mixing.isBigEndian ? $0.bigEndian : $0.littleEndian }
        return words.withUnsafeBytes { Array($0) }
    }

    private mutating func mixPending() {
        // There is one block, or two at the end.
        pending.withUnsafeBytes { bytes in
            if let start = bytes.baseAddress { mixing.mix(start, blocks: bytes.count / Self.blockSize) }
        }
        pending.removeAll(keepingCapacity: true)
    }
}

/// The part of a block hash that differs between the algorithms.
package protocol BlockMixing: Sendable {
    init()

    /// Whether the most significant byte of the words and of the number of bits comes first.
    static var isBigEndian: Bool { get }

    /// The words that form the final hash.
    var words: [UInt32] { get }

    /// Mixes whole blocks of 64 bytes, which need no alignment in memory.
    mutating func mix(_ start: UnsafeRawPointer, blocks: Int)
}

extension UInt32 {
    @inline(__always)
    func rotated(left count: UInt32) -> UInt32 { (self &<< count) | (self &>> (32 &- count)) }

    @inline(__always)
    func rotated(right count: UInt32) -> UInt32 { (self &>> count) | (self &<< (32 &- count)) }
}

/// CRC-32 with the polynomial of ZIP, gzip and PNG, which processes eight bytes at a time.
package struct CRC32: ChecksumStream {
    private static let polynomial: UInt32 = 0xEDB8_8320

    /// The effect of a byte on the sum if zero to seven bytes follow it, in eight tables of 256 entries.
    private static let tables: [UInt32] = {
        var tables = (0..<256).map { byte in
            (0..<8).reduce(UInt32(byte)) { sum, _ in (sum >> 1) ^ (sum & 1 == 1 ? polynomial : 0) }
        }
        for index in 256..<2048 {
            let before = tables[index - 256]
            tables.append((before >> 8) ^ tables[Int(before & 0xFF)])
        }
        return tables
    }()

    private var sum: UInt32 = 0xFFFF_FFFF

    package init() {}

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.baseAddress else { return }
        var sum = sum
        Self.tables.withUnsafeBufferPointer { tables in
            guard let table = tables.baseAddress else { return }
            var index = 0
            while index &+ 8 <= bytes.count {
                let low = sum ^ UInt32(littleEndian: start.loadUnaligned(fromByteOffset: index, as: UInt32.self))
                let high = UInt32(littleEndian: start.loadUnaligned(fromByteOffset: index &+ 4, as: UInt32.self))
                let left =
                    table[Int(low & 0xFF) &+ 1792] ^ table[Int((low &>> 8) & 0xFF) &+ 1536]
                    ^ table[Int((low &>> 16) & 0xFF) &+ 1280] ^ table[Int(low &>> 24) &+ 1024]
                let right =
                    table[Int(high & 0xFF) &+ 768] ^ table[Int((high &>> 8) & 0xFF) &+ 512]
                    ^ table[Int((high &>> 16) & 0xFF) &+ 256] ^ table[Int(high &>> 24)]
                sum = left ^ right
                index &+= 8
            }
            while index < bytes.count {
                sum = (sum &>> 8) ^ table[Int((sum ^ UInt32(bytes[index])) & 0xFF)]
                index &+= 1
            }
        }
        self.sum = sum
    }

    package func finish() -> [UInt8] {
        withUnsafeBytes(of: (~sum).bigEndian) { Array($0) }
    }
}

/// MD5 (RFC 1321).
package typealias MD5 = BlockHash<MD5Mixing>

/// The rounds of MD5.
package struct MD5Mixing: BlockMixing {
    package static var isBigEndian: Bool { false }

    private var state = SIMD4<UInt32>(0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476)

    /// The integer parts of 2³² times the absolute sines of 1 to 64.
    private static let constants = (1...64).map { UInt32(abs(sin(Double($0))) * 4_294_967_296) }

    package init() {}

    package var words: [UInt32] { state.indices.map { state[$0] } }

    package mutating func mix(_ start: UnsafeRawPointer, blocks: Int) {
        Self.constants.withUnsafeBufferPointer { constants in
            guard let k = constants.baseAddress else { return }
            for block in 0..<blocks {
                let input = start + block &* 64
                var words = (state.x, state.y, state.z, state.w)
                Self.rounds(0, (7, 12, 17, 22), (1, 0), &words, input, k) { b, c, d in d ^ (b & (c ^ d)) }
                Self.rounds(16, (5, 9, 14, 20), (5, 1), &words, input, k) { b, c, d in c ^ (d & (b ^ c)) }
                Self.rounds(32, (4, 11, 16, 23), (3, 5), &words, input, k) { b, c, d in b ^ c ^ d }
                Self.rounds(48, (6, 10, 15, 21), (7, 0), &words, input, k) { b, c, d in c ^ (b | ~d) }
                state &+= SIMD4(words.0, words.1, words.2, words.3)
            }
        }
    }

    /// Performs sixteen rounds, which read the words of the block at steps of `order.0`, beginning with `order.1`.
    @inline(__always)
    private static func rounds(
        _ first: Int, _ shifts: (UInt32, UInt32, UInt32, UInt32), _ order: (Int, Int),
        _ words: inout (UInt32, UInt32, UInt32, UInt32), _ input: UnsafeRawPointer, _ k: UnsafePointer<UInt32>,
        _ function: (UInt32, UInt32, UInt32) -> UInt32
    ) {
        var (a, b, c, d) = words
        @inline(__always) func word(_ index: Int) -> UInt32 {
            let place = (order.0 &* index &+ order.1) & 15
            let word = UInt32(littleEndian: input.loadUnaligned(fromByteOffset: place &* 4, as: UInt32.self))
            return word &+ k[first &+ index]
        }
        var index = 0
        while index < 16 {
            a = b &+ (a &+ function(b, c, d) &+ word(index)).rotated(left: shifts.0)
            d = a &+ (d &+ function(a, b, c) &+ word(index &+ 1)).rotated(left: shifts.1)
            c = d &+ (c &+ function(d, a, b) &+ word(index &+ 2)).rotated(left: shifts.2)
            b = c &+ (b &+ function(c, d, a) &+ word(index &+ 3)).rotated(left: shifts.3)
            index &+= 4
        }
        words = (a, b, c, d)
    }
}

/// SHA-1 (FIPS 180-4).
package typealias SHA1 = BlockHash<SHA1Mixing>

/// The rounds of SHA-1.
package struct SHA1Mixing: BlockMixing {
    package static var isBigEndian: Bool { true }

    private var state: (UInt32, UInt32, UInt32, UInt32, UInt32) = (
        0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0
    )

    package init() {}

    package var words: [UInt32] { [state.0, state.1, state.2, state.3, state.4] }

    package mutating func mix(_ start: UnsafeRawPointer, blocks: Int) {
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 80) { schedule in
            guard let w = schedule.baseAddress else { return }
            for block in 0..<blocks {
                Self.expand(start + block &* 64, into: w)
                var words = state
                Self.rounds(0..<20, 0x5A82_7999, &words, w) { b, c, d in d ^ (b & (c ^ d)) }
                Self.rounds(20..<40, 0x6ED9_EBA1, &words, w) { b, c, d in b ^ c ^ d }
                Self.rounds(40..<60, 0x8F1B_BCDC, &words, w) { b, c, d in (b & c) | (d & (b | c)) }
                Self.rounds(60..<80, 0xCA62_C1D6, &words, w) { b, c, d in b ^ c ^ d }
                state.0 &+= words.0
                state.1 &+= words.1
                state.2 &+= words.2
                state.3 &+= words.3
                state.4 &+= words.4
            }
        }
    }

    @inline(__always)
    private static func expand(_ block: UnsafeRawPointer, into w: UnsafeMutablePointer<UInt32>) {
        var index = 0
        while index < 16 {
            w[index] = UInt32(bigEndian: block.loadUnaligned(fromByteOffset: index &* 4, as: UInt32.self))
            index &+= 1
        }
        while index < 80 {
            let word = w[index &- 3] ^ w[index &- 8] ^ w[index &- 14] ^ w[index &- 16]
            w[index] = word.rotated(left: 1)
            index &+= 1
        }
    }

    @inline(__always)
    private static func rounds(
        _ range: Range<Int>, _ constant: UInt32, _ words: inout (UInt32, UInt32, UInt32, UInt32, UInt32),
        _ w: UnsafeMutablePointer<UInt32>, _ function: (UInt32, UInt32, UInt32) -> UInt32
    ) {
        var (a, b, c, d, e) = words
        var index = range.lowerBound
        while index < range.upperBound {
            let next = a.rotated(left: 5) &+ function(b, c, d) &+ e &+ constant &+ w[index]
            (a, b, c, d, e) = (next, a, b.rotated(left: 30), c, d)
            index &+= 1
        }
        words = (a, b, c, d, e)
    }
}

/// SHA-256 (FIPS 180-4).
package typealias SHA256 = BlockHash<SHA256Mixing>

extension SHA256 {
    /// Returns the checksum of bytes.
    ///
    /// The function is not generic, because the compiler optimizes generic functions only for calls in this module.
    package static func checksum(of bytes: [UInt8]) -> [UInt8] { checksum(of: bytes, startingWith: SHA256()) }
}

/// The rounds of SHA-256.
package struct SHA256Mixing: BlockMixing {
    package static var isBigEndian: Bool { true }

    private var state = SIMD8<UInt32>(
        0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19
    )

    /// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
    private static let constants = (2...311).filter { number in (2..<number).allSatisfy { number % $0 != 0 } }
        .map { UInt32(cbrt(Double($0)).truncatingRemainder(dividingBy: 1) * 4_294_967_296) }

    package init() {}

    package var words: [UInt32] { state.indices.map { state[$0] } }

    package mutating func mix(_ start: UnsafeRawPointer, blocks: Int) {
        var sum = state
        Self.constants.withUnsafeBufferPointer { constants in
            withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 64) { schedule in
                guard let k = constants.baseAddress, let w = schedule.baseAddress else { return }
                for block in 0..<blocks {
                    Self.expand(start + block &* 64, into: w)
                    var (a, b, c, d) = (sum[0], sum[1], sum[2], sum[3])
                    var (e, f, g, h) = (sum[4], sum[5], sum[6], sum[7])
                    var round = 0
                    // Eight rounds at a time allow the variables to change their roles without being moved.
                    while round < 64 {
                        Self.round(a, b, c, &d, e, f, g, &h, w[round] &+ k[round])
                        Self.round(h, a, b, &c, d, e, f, &g, w[round &+ 1] &+ k[round &+ 1])
                        Self.round(g, h, a, &b, c, d, e, &f, w[round &+ 2] &+ k[round &+ 2])
                        Self.round(f, g, h, &a, b, c, d, &e, w[round &+ 3] &+ k[round &+ 3])
                        Self.round(e, f, g, &h, a, b, c, &d, w[round &+ 4] &+ k[round &+ 4])
                        Self.round(d, e, f, &g, h, a, b, &c, w[round &+ 5] &+ k[round &+ 5])
                        Self.round(c, d, e, &f, g, h, a, &b, w[round &+ 6] &+ k[round &+ 6])
                        Self.round(b, c, d, &e, f, g, h, &a, w[round &+ 7] &+ k[round &+ 7])
                        round &+= 8
                    }
                    sum &+= SIMD8(a, b, c, d, e, f, g, h)
                }
            }
        }
        state = sum
    }

    @inline(__always)
    private static func expand(_ block: UnsafeRawPointer, into w: UnsafeMutablePointer<UInt32>) {
        var index = 0
        while index < 16 {
            w[index] = UInt32(bigEndian: block.loadUnaligned(fromByteOffset: index &* 4, as: UInt32.self))
            index &+= 1
        }
        while index < 64 {
            let (x, y) = (w[index &- 15], w[index &- 2])
            let sigma0 = x.rotated(right: 7) ^ x.rotated(right: 18) ^ (x &>> 3)
            let sigma1 = y.rotated(right: 17) ^ y.rotated(right: 19) ^ (y &>> 10)
            w[index] = w[index &- 16] &+ sigma0 &+ w[index &- 7] &+ sigma1
            index &+= 1
        }
    }

    @inline(__always)
    private static func round(
        _ a: UInt32, _ b: UInt32, _ c: UInt32, _ d: inout UInt32,
        _ e: UInt32, _ f: UInt32, _ g: UInt32, _ h: inout UInt32, _ input: UInt32
    ) {
        let sum1 = e.rotated(right: 6) ^ e.rotated(right: 11) ^ e.rotated(right: 25)
        let choice = g ^ (e & (f ^ g))
        let first = h &+ sum1 &+ choice &+ input
        let sum0 = a.rotated(right: 2) ^ a.rotated(right: 13) ^ a.rotated(right: 22)
        let majority = (a & b) | (c & (a | b))
        d = d &+ first
        h = first &+ sum0 &+ majority
    }
}
