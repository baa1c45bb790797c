// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A reference to a resource, absolute or relative, taken apart and resolved as RFC 3986 says.
///
/// Foundation's own resolution is wrong on Linux, and ends the process on some references; this one has no way to fail.
package struct AddressReference: Hashable, Sendable {
    package var scheme: String?
    package var authority: String?
    package var path: String
    package var query: String?
    package var fragment: String?

    /// Takes a text apart (RFC 3986, appendix B): each text is some reference.
    package init(_ text: String) {
        var rest = Array(text.utf8)[...]
        fragment = Self.cut(&rest, at: UInt8(ascii: "#"))
        query = Self.cut(&rest, at: UInt8(ascii: "?"))
        if let colon = rest.firstIndex(of: UInt8(ascii: ":")), Self.isScheme(rest[..<colon]) {
            scheme = String(decoding: rest[..<colon], as: UTF8.self)
            rest = rest[(colon + 1)...]
        }
        if rest.starts(with: "//".utf8) {
            rest = rest.dropFirst(2)
            let end = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
            authority = String(decoding: rest[..<end], as: UTF8.self)
            rest = rest[end...]
        }
        path = String(decoding: rest, as: UTF8.self)
    }

    /// The text of the reference (RFC 3986, section 5.3).
    package var text: String {
        var text = ""
        if let scheme { text += scheme + ":" }
        if let authority { text += "//" + authority }
        text += path
        if let query { text += "?" + query }
        if let fragment { text += "#" + fragment }
        return text
    }

    /// What the reference means where `base` is the address of the resource in which it was found (section 5.2.2).
    package func resolved(against base: AddressReference) -> AddressReference {
        var target = self
        guard scheme == nil else {
            target.path = Self.withoutDotSegments(path)
            return target
        }
        target.scheme = base.scheme
        if authority != nil {
            target.path = Self.withoutDotSegments(path)
            return target
        }
        target.authority = base.authority
        if path.isEmpty {
            target.path = base.path
            target.query = query ?? base.query
        } else if path.utf8.first == UInt8(ascii: "/") {
            target.path = Self.withoutDotSegments(path)
        } else {
            target.path = Self.withoutDotSegments(base.merging(path))
        }
        return target
    }

    /// A relative path put in the place of what follows the last slash of this one (section 5.2.3).
    private func merging(_ relative: String) -> String {
        if authority != nil, path.isEmpty { return "/" + relative }
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return relative }
        return String(path[...slash]) + relative
    }

    /// The path with `.` and `..` carried out (section 5.2.4).
    package static func withoutDotSegments(_ path: String) -> String {
        let slash = UInt8(ascii: "/")
        var input = Array(path.utf8)[...]
        var output: [UInt8] = []
        func leaveSegment() {
            output.removeLast(output.count - (output.lastIndex(of: slash) ?? 0))
        }
        while !input.isEmpty {
            if input.starts(with: "../".utf8) {
                input = input.dropFirst(3)
            } else if input.starts(with: "./".utf8) || input.starts(with: "/./".utf8) {
                input = input.dropFirst(2)
            } else if input.elementsEqual("/.".utf8) {
                input = [slash]
            } else if input.starts(with: "/../".utf8) {
                input = input.dropFirst(3)
                leaveSegment()
            } else if input.elementsEqual("/..".utf8) {
                input = [slash]
                leaveSegment()
            } else if input.elementsEqual(".".utf8) || input.elementsEqual("..".utf8) {
                input = []
            } else {
                let end = input.dropFirst().firstIndex(of: slash) ?? input.endIndex
                output += input[..<end]
                input = input[end...]
            }
        }
        return String(decoding: output, as: UTF8.self)
    }

    /// Takes what follows the first such byte off the end, with the byte.
    private static func cut(_ bytes: inout ArraySlice<UInt8>, at mark: UInt8) -> String? {
        guard let index = bytes.firstIndex(of: mark) else { return nil }
        defer { bytes = bytes[..<index] }
        return String(decoding: bytes[(index + 1)...], as: UTF8.self)
    }

    private static func isScheme(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard let first = bytes.first, first.isLetter else { return false }
        return bytes.allSatisfy { $0.isLetter || $0.isDigit || "+-.".utf8.contains($0) }
    }
}
