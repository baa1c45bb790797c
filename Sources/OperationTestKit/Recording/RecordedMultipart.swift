// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// A body in several parts, with a boundary that is the same in every recording, and without the parts of secret names.
struct RecordedMultipart {
    static let usualBoundary = "recorded-boundary"

    private let data: Data
    private let boundary: String

    init(_ data: Data, boundary: String) {
        (self.data, self.boundary) = (data, boundary)
    }

    /// The boundary that a type names.
    static func boundary(in type: String) -> String? {
        guard let start = type.range(of: "boundary=", options: .caseInsensitive) else { return nil }
        let value = type[start.upperBound...]
        let text = value.first == "\"" ? value.dropFirst().prefix { $0 != "\"" } : value.prefix { !"; ".contains($0) }
        return text.isEmpty ? nil : String(text)
    }

    func redacted(hides: (String) -> Bool) -> Data {
        let line = Data("--\(boundary)".utf8)
        var result = Data()
        var rest = data[...]
        while let next = rest.range(of: line) {
            result += part(rest[rest.startIndex..<next.lowerBound], hides)
            result += Data("--\(Self.usualBoundary)".utf8)
            rest = rest[next.upperBound...]
        }
        return result + rest
    }

    /// A part with its head, from behind one boundary to before the next.
    private func part(_ part: Data, _ hides: (String) -> Bool) -> Data {
        guard let end = part.range(of: Data("\r\n\r\n".utf8)) else { return part }
        let head = String(decoding: part[part.startIndex..<end.lowerBound], as: UTF8.self)
        guard let start = head.range(of: "; name=\"") else { return part }
        let name = head[start.upperBound...].prefix { $0 != "\"" }
        guard hides(String(name)) else { return part }
        return part[part.startIndex..<end.upperBound] + Data("\(RecordingRedactor.stars)\r\n".utf8)
    }
}
