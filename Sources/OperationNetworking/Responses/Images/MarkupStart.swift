// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The beginning of a text of XML or HTML, read up to its first element.
struct MarkupStart {
    private var rest: Substring

    init(_ bytes: [UInt8]) {
        rest = String(decoding: bytes, as: UTF8.self)[...]
    }

    /// The name of the first element, without its prefix; nil if something else comes before it than XML allows there.
    var element: String? {
        var text = self
        if text.rest.unicodeScalars.first == "\u{FEFF}" { text.rest.unicodeScalars.removeFirst() }
        while true {
            text.rest = text.rest.drop(while: \.isWhitespace)
            if text.skip(from: "<?", to: "?>") || text.skip(from: "<!--", to: "-->") || text.skipDoctype() { continue }
            guard text.rest.first == "<" else { return nil }
            let name = text.rest.dropFirst().prefix { $0.isLetter || $0.isNumber || ":-_.".contains($0) }
            return name.split(separator: ":").last.map(String.init)
        }
    }

    /// Skips what begins and ends so; false if it does not begin here, or its end is not there.
    private mutating func skip(from start: String, to end: String) -> Bool {
        guard rest.hasPrefix(start), let found = rest.dropFirst(start.count).firstRange(of: end) else { return false }
        rest = rest[found.upperBound...]
        return true
    }

    /// Skips the declaration of the document's type, with all that is declared within it.
    private mutating func skipDoctype() -> Bool {
        guard rest.prefix(9).lowercased() == "<!doctype" else { return false }
        var (depth, quote): (Int, Character?) = (0, nil)
        for index in rest.indices {
            let letter = rest[index]
            if let open = quote {
                if letter == open { quote = nil }
                continue
            }
            switch letter {
            case "\"", "'": quote = letter
            case "[": depth += 1
            case "]": depth -= 1
            case ">" where depth <= 0:
                rest = rest[rest.index(after: index)...]
                return true
            default: break
            }
        }
        return false
    }
}
