// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// JSON of which single values are replaced, and all else stays as it was written, byte by byte.
struct RecordedJSON {
    private let bytes: [UInt8]

    /// Nil if it is no JSON.
    init?(_ data: Data) {
        guard let first = data.first(where: { ![9, 10, 13, 32].contains($0) }), first == 0x7B || first == 0x5B,
            (try? JSONSerialization.jsonObject(with: data)) != nil
        else { return nil }
        bytes = Array(data)
    }

    /// The same without the values of such names, and with other texts in the place of its texts.
    func redacted(hides: (String) -> Bool, text: (String) -> String) -> Data {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            guard bytes[index] == 0x22 else {
                result.append(bytes[index])
                index += 1
                continue
            }
            let end = endOfString(from: index)
            let string = bytes[index..<end]
            let colon = afterBlanks(end)
            guard colon < bytes.count, bytes[colon] == 0x3A else {
                let plain = String(decoding: string.dropFirst().dropLast(), as: UTF8.self)
                result += [0x22] + Array(text(plain).utf8) + [0x22]
                index = end
                continue
            }
            let value = afterBlanks(colon + 1)
            result += bytes[index..<value]
            index = value
            if hides(Self.name(string)) {
                index = endOfValue(from: value)
                result += masked(value..<index)
            }
        }
        return Data(result)
    }

    /// A value of the same shape, so that it is decoded as before: stars for texts, zeros for numbers.
    private func masked(_ range: Range<Int>) -> [UInt8] {
        var result: [UInt8] = []
        var index = range.lowerBound
        while index < range.upperBound {
            let byte = bytes[index]
            if byte == 0x22 {
                let end = endOfString(from: index)
                let next = afterBlanks(end)
                let isName = next < range.upperBound && bytes[next] == 0x3A
                result += isName ? Array(bytes[index..<end]) : Array("\"\(RecordingRedactor.stars)\"".utf8)
                index = end
            } else if byte == 0x2D || (0x30...0x39).contains(byte) {
                let number = bytes[index..<range.upperBound].prefix { "+-.eE0123456789".utf8.contains($0) }
                result.append(0x30)
                index += number.count
            } else {
                result.append(byte)
                index += 1
            }
        }
        return result
    }

    private static func name(_ string: ArraySlice<UInt8>) -> String {
        let text = try? JSONSerialization.jsonObject(with: Data(string), options: .fragmentsAllowed) as? String
        return text ?? String(decoding: string.dropFirst().dropLast(), as: UTF8.self)
    }

    private func afterBlanks(_ start: Int) -> Int {
        var index = start
        while index < bytes.count, [9, 10, 13, 32].contains(bytes[index]) { index += 1 }
        return index
    }

    /// Behind the closing quote.
    private func endOfString(from start: Int) -> Int {
        var index = start + 1
        while index < bytes.count, bytes[index] != 0x22 { index += bytes[index] == 0x5C ? 2 : 1 }
        return min(index + 1, bytes.count)
    }

    private func endOfValue(from start: Int) -> Int {
        var index = start
        var depth = 0
        while index < bytes.count {
            switch bytes[index] {
            case 0x22:
                index = endOfString(from: index)
                if depth == 0 { return index }
                continue
            case 0x7B, 0x5B: depth += 1
            case 0x7D, 0x5D:
                // The end of what the value is in.
                if depth == 0 { return index }
                depth -= 1
                if depth == 0 { return index + 1 }
            case 0x2C, 9, 10, 13, 32: if depth == 0 { return index }
            default: break
            }
            index += 1
        }
        return index
    }
}
