// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Names for downloaded files, made of what servers say.
///
/// A name is always one plain name in its directory: without slashes of either kind, control characters and signs that
/// turn the direction of writing, not hidden, not longer than file systems allow, and never empty.
public enum DownloadFileName {
    /// The name for a response's file: of its `Content-Disposition`, or else the last part of its URL, or else `download`.
    public static func name(for head: ResponseHead) -> String {
        if let field = head.headers["Content-Disposition"], let given = ContentDisposition.fileName(in: field) {
            let name = cleaned(given)
            if !name.isEmpty { return name }
        }
        let path = URLComponents(url: head.url, resolvingAgainstBaseURL: true)?.percentEncodedPath ?? ""
        let last = path.split(separator: "/").last.map(String.init) ?? ""
        let name = cleaned(last.removingPercentEncoding ?? last)
        return name.isEmpty ? "download" : name
    }

    /// What is left of a name that may not be trusted; empty if nothing is.
    public static func cleaned(_ name: String) -> String {
        // Of a path only its end counts: some servers send that of the uploader's disk.
        let parts = name.unicodeScalars.split { $0 == "/" || $0 == "\\" || $0 == "\u{0}" }
        var scalars = (parts.last.map { Array($0) } ?? []).filter { !isDangerous($0) }
        while let last = scalars.last, last == "." || last.properties.isWhitespace { scalars.removeLast() }
        let kept = scalars.drop { $0 == "." || $0 == "~" || $0.properties.isWhitespace }
        return shortened(String(String.UnicodeScalarView(kept)))
    }

    private static func isDangerous(_ scalar: UnicodeScalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse: true
        default: ":*?\"<>|".unicodeScalars.contains(scalar)
        }
    }

    /// At most 200 bytes, for 255 are all that a name may have; the ending stays.
    private static func shortened(_ name: String) -> String {
        let limit = 200
        guard name.utf8.count > limit else { return name }
        let dot = name.lastIndex(of: ".")
        let ending = dot.map { String(name[$0...]) } ?? ""
        guard let dot, ending.utf8.count <= 20 else { return prefix(of: name, bytes: limit) }
        return prefix(of: String(name[..<dot]), bytes: limit - ending.utf8.count) + ending
    }

    private static func prefix(of text: String, bytes limit: Int) -> String {
        var result = ""
        var count = 0
        for character in text {
            count += character.utf8.count
            guard count <= limit else { break }
            result.append(character)
        }
        guard result.isEmpty else { return result }
        // What people see as one character may be longer than all that a name may have.
        count = 0
        for scalar in text.unicodeScalars {
            count += UTF8.width(scalar)
            guard count <= limit else { break }
            result.unicodeScalars.append(scalar)
        }
        return result
    }
}
