// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A body in several parts.
struct RecordedMultipart {
    /// What takes the place of boundaries, which are other ones each time.
    static let usualBoundary = "recorded-boundary"

    private let data: Data
    private let boundary: String

    init(_ data: Data, boundary: String) {
        (self.data, self.boundary) = (data, boundary)
    }

    /// Where the boundary stands in a type; nil if that is none of bodies in parts, or names none.
    static func boundary(in type: String) -> Range<String.Index>? {
        guard type.lowercased().hasPrefix("multipart/"),
            let start = type.range(of: "boundary=", options: .caseInsensitive)?.upperBound
        else { return nil }
        let value = type[start...]
        let text = value.first == "\"" ? value.dropFirst().prefix { $0 != "\"" } : value.prefix { !"; ".contains($0) }
        return text.isEmpty ? nil : text.startIndex..<text.endIndex
    }

    /// Returns the body with another boundary, and with other headers and contents of its parts.
    ///
    /// Nil if it has no such parts, or there is nothing in the place of the content of one. It may break off.
    func rewritten(
        boundary new: String, head: (String) -> String, content: (_ name: String?, _ type: String?, Data) -> Data?
    ) -> Data? {
        let marks = marks()
        guard let first = marks.first else { return nil }
        var result = Data(data[data.startIndex..<first.lowerBound])
        for (number, mark) in marks.enumerated() {
            result += Data("--\(new)".utf8)
            let isLast = number + 1 == marks.count
            let end = isLast ? data.endIndex : marks[number + 1].lowerBound
            let piece = Data(data[mark.upperBound..<end])
            guard let part = part(piece, breaksOff: isLast, head, content) else { return nil }
            result += part
        }
        return result
    }

    /// Where lines begin that part one from another.
    private func marks() -> [Range<Data.Index>] {
        let line = Data("--\(boundary)".utf8)
        var marks: [Range<Data.Index>] = []
        var start = data.startIndex
        while let found = data.range(of: line, in: start..<data.endIndex) {
            start = found.upperBound
            let isAtStart = found.lowerBound == data.startIndex || data[found.lowerBound - 1] == 0x0A
            let isWhole = start == data.endIndex || [0x0D, 0x0A, 0x2D, 0x20, 0x09].contains(data[start])
            if isAtStart && isWhole { marks.append(found) }
        }
        return marks
    }

    /// A part with its head, from behind one boundary to before the next; the last one has only an end, or breaks off.
    private func part(
        _ part: Data, breaksOff: Bool, _ shownHead: (String) -> String,
        _ content: (_ name: String?, _ type: String?, Data) -> Data?
    ) -> Data? {
        if part.starts(with: Data("--".utf8)) { return part }
        // One that breaks off within its head has no content.
        guard let gap = part.range(of: Data("\r\n\r\n".utf8)) else { return breaksOff ? part : nil }
        let head = String(decoding: part[part.startIndex..<gap.lowerBound], as: UTF8.self)
        let lines = head.split(whereSeparator: \.isNewline)
        let line = Data("\r\n".utf8)
        var inside = part[gap.upperBound...]
        let end = !breaksOff && inside.suffix(2).elementsEqual(line) ? line : Data()
        inside = inside.dropLast(end.count)
        let type = Self.value("Content-Type", in: lines)
        guard let shown = content(Self.name(in: lines), type, Data(inside)) else { return nil }
        let clean = shownHead(head)
        if clean != head { return Data(clean.utf8) + Data("\r\n\r\n".utf8) + shown + end }
        return part[part.startIndex..<gap.upperBound] + shown + end
    }

    /// The name of a field of a form.
    private static func name(in lines: [Substring]) -> String? {
        guard let value = value("Content-Disposition", in: lines),
            let start = value.range(of: #"(^|[;\s])name\s*="#, options: [.regularExpression, .caseInsensitive])
        else { return nil }
        let rest = value[start.upperBound...].drop { $0 == " " }
        return String(rest.first == "\"" ? rest.dropFirst().prefix { $0 != "\"" } : rest.prefix { $0 != ";" })
    }

    private static func value(_ name: String, in lines: [Substring]) -> String? {
        let line = lines.first { $0.prefix { $0 != ":" }.lowercased() == name.lowercased() }
        return line.map { $0.drop { $0 != ":" }.dropFirst().trimmingCharacters(in: .whitespaces) }
    }
}
