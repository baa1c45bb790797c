// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The text of a body, by the character set that its type names.
enum ResponseText {
    private static let encodings: [String: String.Encoding] = [
        "utf-8": .utf8, "utf8": .utf8, "us-ascii": .ascii, "ascii": .ascii, "iso-8859-1": .isoLatin1,
        "latin1": .isoLatin1, "iso-8859-2": .isoLatin2, "windows-1252": .windowsCP1252, "cp1252": .windowsCP1252,
        "windows-1250": .windowsCP1250, "windows-1251": .windowsCP1251, "utf-16": .utf16,
        "utf-16le": .utf16LittleEndian, "utf-16be": .utf16BigEndian, "utf-32": .utf32,
    ]

    /// UTF-8 where no character set is named; a byte order mark of UTF-8 is left out.
    static func text(_ data: Data, _ contentType: String?) throws(NetworkError) -> String {
        let name = contentType.flatMap(charset)
        guard let encoding = name.map({ encodings[$0] }) ?? .utf8 else {
            throw refusal("The text is in the character set \(name?.prefix(40) ?? ""), which is not known here.")
        }
        let bytes = encoding == .utf8 && data.starts(with: [0xEF, 0xBB, 0xBF]) ? data.dropFirst(3) : data
        guard let text = String(bytes: bytes, encoding: encoding) else {
            throw refusal("The body is no text in the character set \(name ?? "utf-8").")
        }
        return text
    }

    private static func charset(_ contentType: String) -> String? {
        for parameter in contentType.split(separator: ";").dropFirst() {
            let parts = parameter.split(separator: "=", maxSplits: 1).map { String($0).trimmedBlanks }
            guard parts.count == 2, parts[0].lowercased() == "charset" else { continue }
            return parts[1].trimmingCharacters(in: ["\""]).lowercased()
        }
        return nil
    }

    private static func refusal(_ message: String) -> NetworkError {
        NetworkError(
            code: .undecodableResult, phase: .evaluating, message: "\(message) Use Data as the result and read it.")
    }
}

extension HTTPURLResponse {
    var contentType: String? { value(forHTTPHeaderField: "Content-Type") }
}
