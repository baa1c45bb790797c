// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A run of bytes as Linux writes them: in the machine's own order, and never read beyond its end.
struct NetlinkBytes: Sendable {
    private let bytes: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
    }

    var count: Int { bytes.count }

    /// The bytes themselves.
    var array: [UInt8] { Array(bytes) }

    /// A number at a place; nil if it does not lie within the bytes.
    func number<Number: FixedWidthInteger>(_ type: Number.Type, at offset: Int) -> Number? {
        let size = MemoryLayout<Number>.size
        guard offset >= 0, offset <= bytes.count - size else { return nil }
        return bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: type) }
    }

    /// A part of the bytes; nil if it does not lie within them.
    func part(from start: Int, count: Int) -> NetlinkBytes? {
        guard start >= 0, count >= 0, start <= bytes.count, count <= bytes.count - start else { return nil }
        let first = bytes.startIndex + start
        return NetlinkBytes(bytes[first..<(first + count)])
    }

    /// What follows a place; nil if that lies beyond the end.
    func rest(from start: Int) -> NetlinkBytes? { part(from: start, count: count - start) }

    /// The text up to the first zero, as names of interfaces are written.
    var text: String { String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self) }
}
