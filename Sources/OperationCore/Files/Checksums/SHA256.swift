// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// SHA-256 (FIPS 180-4).
package typealias SHA256 = BlockHash<SHA256Mixing>

/// The rounds of SHA-256.
package struct SHA256Mixing: BlockMixing {
    package static var isBigEndian: Bool { true }

    private var state: (UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32) = (
        0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19
    )

    private static let constants: [UInt32] = [
        0x428A_2F98, 0x7137_4491, 0xB5C0_FBCF, 0xE9B5_DBA5, 0x3956_C25B, 0x59F1_11F1,
        0x923F_82A4, 0xAB1C_5ED5, 0xD807_AA98, 0x1283_5B01, 0x2431_85BE, 0x550C_7DC3,
        0x72BE_5D74, 0x80DE_B1FE, 0x9BDC_06A7, 0xC19B_F174, 0xE49B_69C1, 0xEFBE_4786,
        0x0FC1_9DC6, 0x240C_A1CC, 0x2DE9_2C6F, 0x4A74_84AA, 0x5CB0_A9DC, 0x76F9_88DA,
        0x983E_5152, 0xA831_C66D, 0xB003_27C8, 0xBF59_7FC7, 0xC6E0_0BF3, 0xD5A7_9147,
        0x06CA_6351, 0x1429_2967, 0x27B7_0A85, 0x2E1B_2138, 0x4D2C_6DFC, 0x5338_0D13,
        0x650A_7354, 0x766A_0ABB, 0x81C2_C92E, 0x9272_2C85, 0xA2BF_E8A1, 0xA81A_664B,
        0xC24B_8B70, 0xC76C_51A3, 0xD192_E819, 0xD699_0624, 0xF40E_3585, 0x106A_A070,
        0x19A4_C116, 0x1E37_6C08, 0x2748_774C, 0x34B0_BCB5, 0x391C_0CB3, 0x4ED8_AA4A,
        0x5B9C_CA4F, 0x682E_6FF3, 0x748F_82EE, 0x78A5_636F, 0x84C8_7814, 0x8CC7_0208,
        0x90BE_FFFA, 0xA450_6CEB, 0xBEF9_A3F7, 0xC671_78F2,
    ]

    package init() {}

    package var words: [UInt32] {
        [state.0, state.1, state.2, state.3, state.4, state.5, state.6, state.7]
    }

    package mutating func mix(_ start: UnsafeRawPointer, blocks: Int) {
        var (s0, s1, s2, s3, s4, s5, s6, s7) = state
        Self.constants.withUnsafeBufferPointer { constants in
            withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 64) { schedule in
                guard let k = constants.baseAddress, let w = schedule.baseAddress else { return }
                for block in 0..<blocks {
                    Self.expand(start + block &* 64, into: w)
                    var (a, b, c, d, e, f, g, h) = (s0, s1, s2, s3, s4, s5, s6, s7)
                    var round = 0
                    // Eight at a time, so that the words change their roles without being moved.
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
                    (s0, s1, s2, s3) = (s0 &+ a, s1 &+ b, s2 &+ c, s3 &+ d)
                    (s4, s5, s6, s7) = (s4 &+ e, s5 &+ f, s6 &+ g, s7 &+ h)
                }
            }
        }
        state = (s0, s1, s2, s3, s4, s5, s6, s7)
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
