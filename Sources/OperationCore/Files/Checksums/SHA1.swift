// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

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
