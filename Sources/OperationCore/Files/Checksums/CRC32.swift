// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// CRC-32 with the polynomial of ZIP, gzip and PNG, eight bytes at a time.
package struct CRC32: ChecksumStream {
    private static let polynomial: UInt32 = 0xEDB8_8320

    /// What a byte does to the sum when none to seven more bytes follow it: eight tables of 256.
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
