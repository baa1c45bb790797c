// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The parts of an `Authorization` field behind its scheme: names with values, in quotes or without.
struct AuthorizationParts {
    private var values: [String: String] = [:]

    init(_ text: String) {
        var rest = text[...]
        while let equals = rest.firstIndex(of: "=") {
            let name = rest[..<equals].trimming(", \t").lowercased()
            rest = rest[rest.index(after: equals)...]
            let isQuoted = rest.first == "\""
            if isQuoted { rest = rest.dropFirst() }
            var value = ""
            while let character = rest.popFirst(), character != (isQuoted ? "\"" : ",") {
                value.append(isQuoted && character == "\\" ? rest.popFirst() ?? "\\" : character)
            }
            values[name] = isQuoted ? value : value[...].trimming(" \t")
        }
    }

    subscript(name: String) -> String? { values[name] }
}

extension Substring {
    fileprivate func trimming(_ characters: String) -> String {
        let start = drop { characters.contains($0) }
        guard let last = start.lastIndex(where: { !characters.contains($0) }) else { return "" }
        return String(start[...last])
    }
}
