// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// MD5 (RFC 1321).
package typealias MD5 = BlockHash<MD5Mixing>

/// The rounds of MD5.
package struct MD5Mixing: BlockMixing {
    package static var isBigEndian: Bool { false }

    private var state: (UInt32, UInt32, UInt32, UInt32) = (0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476)

    /// The integer parts of 2³² times the sines of 1 to 64.
    private static let constants: [UInt32] = [
        0xD76A_A478, 0xE8C7_B756, 0x2420_70DB, 0xC1BD_CEEE, 0xF57C_0FAF, 0x4787_C62A,
        0xA830_4613, 0xFD46_9501, 0x6980_98D8, 0x8B44_F7AF, 0xFFFF_5BB1, 0x895C_D7BE,
        0x6B90_1122, 0xFD98_7193, 0xA679_438E, 0x49B4_0821, 0xF61E_2562, 0xC040_B340,
        0x265E_5A51, 0xE9B6_C7AA, 0xD62F_105D, 0x0244_1453, 0xD8A1_E681, 0xE7D3_FBC8,
        0x21E1_CDE6, 0xC337_07D6, 0xF4D5_0D87, 0x455A_14ED, 0xA9E3_E905, 0xFCEF_A3F8,
        0x676F_02D9, 0x8D2A_4C8A, 0xFFFA_3942, 0x8771_F681, 0x6D9D_6122, 0xFDE5_380C,
        0xA4BE_EA44, 0x4BDE_CFA9, 0xF6BB_4B60, 0xBEBF_BC70, 0x289B_7EC6, 0xEAA1_27FA,
        0xD4EF_3085, 0x0488_1D05, 0xD9D4_D039, 0xE6DB_99E5, 0x1FA2_7CF8, 0xC4AC_5665,
        0xF429_2244, 0x432A_FF97, 0xAB94_23A7, 0xFC93_A039, 0x655B_59C3, 0x8F0C_CC92,
        0xFFEF_F47D, 0x8584_5DD1, 0x6FA8_7E4F, 0xFE2C_E6E0, 0xA301_4314, 0x4E08_11A1,
        0xF753_7E82, 0xBD3A_F235, 0x2AD7_D2BB, 0xEB86_D391,
    ]

    package init() {}

    package var words: [UInt32] { [state.0, state.1, state.2, state.3] }

    package mutating func mix(_ start: UnsafeRawPointer, blocks: Int) {
        Self.constants.withUnsafeBufferPointer { constants in
            guard let k = constants.baseAddress else { return }
            for block in 0..<blocks {
                let input = start + block &* 64
                var words = state
                Self.rounds(0, (7, 12, 17, 22), (1, 0), &words, input, k) { b, c, d in d ^ (b & (c ^ d)) }
                Self.rounds(16, (5, 9, 14, 20), (5, 1), &words, input, k) { b, c, d in c ^ (d & (b ^ c)) }
                Self.rounds(32, (4, 11, 16, 23), (3, 5), &words, input, k) { b, c, d in b ^ c ^ d }
                Self.rounds(48, (6, 10, 15, 21), (7, 0), &words, input, k) { b, c, d in c ^ (b | ~d) }
                state.0 &+= words.0
                state.1 &+= words.1
                state.2 &+= words.2
                state.3 &+= words.3
            }
        }
    }

    /// Sixteen rounds, which take the words of the block at steps of `order.0`, beginning with `order.1`.
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
