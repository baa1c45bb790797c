// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A hash that mixes blocks of 64 bytes into a few words, and at the end the number of bits: SHA-256, SHA-1 and MD5.
package struct BlockHash<Mixing: BlockMixing>: ChecksumStream {
    private static var blockSize: Int { 64 }

    private var mixing = Mixing()
    /// The bytes that do not fill a block yet.
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
        return mixing.words.flatMap { word in
            withUnsafeBytes(of: Mixing.isBigEndian ? word.bigEndian : word.littleEndian) { Array($0) }
        }
    }

    private mutating func mixPending() {
        // One block, or at the end two.
        pending.withUnsafeBytes { bytes in
            if let start = bytes.baseAddress { mixing.mix(start, blocks: bytes.count / Self.blockSize) }
        }
        pending.removeAll(keepingCapacity: true)
    }
}

/// What tells one block hash from another.
package protocol BlockMixing: Sendable {
    init()

    /// Whether words and the number of bits are written the most significant byte first.
    static var isBigEndian: Bool { get }

    /// The words that are the hash in the end.
    var words: [UInt32] { get }

    /// Mixes whole blocks of 64 bytes in; they may lie anywhere in memory.
    mutating func mix(_ start: UnsafeRawPointer, blocks: Int)
}

extension UInt32 {
    @inline(__always)
    func rotated(left count: UInt32) -> UInt32 { (self &<< count) | (self &>> (32 &- count)) }

    @inline(__always)
    func rotated(right count: UInt32) -> UInt32 { (self &>> count) | (self &<< (32 &- count)) }
}
