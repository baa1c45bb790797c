// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Makes pairs of a tree, and text of pairs.
struct FormWriter {
    struct Pair: Equatable {
        let name: String
        let value: String
    }

    private let options: FormEncoder
    private var pairs: [Pair] = []

    private init(_ options: FormEncoder) {
        self.options = options
    }

    /// The names and values of a tree, in its order.
    static func pairs(of root: FormNode, by options: FormEncoder) throws(FormEncodingError) -> [Pair] {
        guard case .keyed(let children) = root.content else {
            throw FormEncodingError(
                .notKeyed, at: [], "A form is made of names and values. Send something with keys, or a dictionary.")
        }
        var writer = FormWriter(options)
        for child in children { writer.write(child.node, name: child.key) }
        return writer.pairs
    }

    private mutating func write(_ node: FormNode, name: String) {
        switch node.content {
        case .empty: break
        case .null:
            if let text = options.nils.text { pairs.append(Pair(name: name, value: text)) }
        case .text(let text): pairs.append(Pair(name: name, value: text))
        case .list(let nodes):
            for (index, node) in nodes.enumerated() { write(node, name: options.arrays.name(name, index)) }
        case .keyed(let children):
            for child in children { write(child.node, name: options.nesting.name(name, child.key)) }
        }
    }

    /// The pairs, percent-encoded.
    static func text(of pairs: [Pair], writesPlus: Bool) -> String {
        var bytes: [UInt8] = []
        for pair in pairs {
            if !bytes.isEmpty { bytes.append(UInt8(ascii: "&")) }
            append(pair.name, to: &bytes, writesPlus)
            bytes.append(UInt8(ascii: "="))
            append(pair.value, to: &bytes, writesPlus)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func append(_ text: String, to bytes: inout [UInt8], _ writesPlus: Bool) {
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
                bytes.append(byte)
            case UInt8(ascii: "*") where writesPlus, UInt8(ascii: "~") where !writesPlus: bytes.append(byte)
            case 0x20 where writesPlus: bytes.append(UInt8(ascii: "+"))
            default:
                bytes.append(UInt8(ascii: "%"))
                bytes += Hexadecimal.upper(byte)
            }
        }
    }
}
