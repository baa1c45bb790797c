// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Writes the pairs of a tree, percent-encoded.
struct FormWriter {
    private let options: FormEncoder
    private var bytes: [UInt8] = []

    init(_ options: FormEncoder) {
        self.options = options
    }

    func text(of root: FormNode) throws(FormEncodingError) -> String {
        guard case .keyed(let pairs) = root.content else {
            throw FormEncodingError(
                .notKeyed, at: [], "A form is made of names and values. Send something with keys, or a dictionary.")
        }
        var writer = self
        for pair in pairs { writer.write(pair.node, name: pair.key) }
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    private mutating func write(_ node: FormNode, name: String) {
        switch node.content {
        case .empty: break
        case .null:
            if let text = options.nils.text { append(name, text) }
        case .text(let text): append(name, text)
        case .list(let nodes):
            for (index, node) in nodes.enumerated() { write(node, name: options.arrays.name(name, index)) }
        case .keyed(let pairs):
            for pair in pairs { write(pair.node, name: options.nesting.name(name, pair.key)) }
        }
    }

    private mutating func append(_ name: String, _ value: String) {
        if !bytes.isEmpty { bytes.append(UInt8(ascii: "&")) }
        append(encoded: name)
        bytes.append(UInt8(ascii: "="))
        append(encoded: value)
    }

    private mutating func append(encoded text: String) {
        let writesPlus = options.spaces.writesPlus
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
