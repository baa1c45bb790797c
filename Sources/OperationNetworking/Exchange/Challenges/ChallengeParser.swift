// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Reads a field with challenges, where commas part challenges and their parameters alike.
struct ChallengeParser {
    private var scanner: HeaderScanner
    /// More challenges than anybody means; a field of commas must not cost more than it is long.
    private static let limit = 32

    init(_ field: String) {
        scanner = HeaderScanner(field)
    }

    mutating func challenges() -> [Challenge] {
        var found: [Challenge] = []
        while found.count < Self.limit {
            scanner.skip { $0.isBlank || $0 == UInt8(ascii: ",") }
            guard !scanner.isAtEnd else { break }
            if let challenge = challenge() {
                found.append(challenge)
            } else {
                scanner.skipToComma()
            }
        }
        return found
    }

    private mutating func challenge() -> Challenge? {
        guard let scheme = scanner.token(), scanner.isAtBlank || isAtEnd else { return nil }
        let hadBlank = scanner.isAtBlank
        scanner.skip { $0.isBlank }
        if hadBlank, let data = token68() {
            return Challenge(scheme: scheme.asciiLowercased, token: data, parameters: [:])
        }
        var parameters: [String: String] = [:]
        var isAtStart = !isAtEnd
        // A comma may part two parameters or two challenges: what follows it says which.
        while let (name, value) = parameter() {
            // Of two of one name the first counts.
            if parameters[name] == nil { parameters[name] = value }
            scanner.skip { $0.isBlank }
            guard isAtEnd else { return nil }
            scanner.skip { $0.isBlank || $0 == UInt8(ascii: ",") }
            isAtStart = false
        }
        // What follows the scheme and is no parameter belongs to nothing.
        if isAtStart { return nil }
        return Challenge(scheme: scheme.asciiLowercased, token: nil, parameters: parameters)
    }

    /// A name, an equals sign and a value; nothing is taken if it is none.
    private mutating func parameter() -> (String, String)? {
        let start = scanner.index
        if let name = scanner.token() {
            scanner.skip { $0.isBlank }
            if scanner.take(UInt8(ascii: "=")) {
                scanner.skip { $0.isBlank }
                let value = scanner.isAt(UInt8(ascii: "\"")) ? scanner.quoted() : scanner.token()
                if let value { return (name.asciiLowercased, value) }
            }
        }
        scanner.index = start
        return nil
    }

    /// Data up to a comma or the end; nothing is taken if it is none.
    private mutating func token68() -> String? {
        let start = scanner.index
        scanner.skip { $0.isToken68Character }
        guard scanner.index > start else { return nil }
        scanner.skip { $0 == UInt8(ascii: "=") }
        let end = scanner.index
        scanner.skip { $0.isBlank }
        if isAtEnd { return scanner.text(start..<end) }
        scanner.index = start
        return nil
    }

    private var isAtEnd: Bool { scanner.isAtEnd || scanner.isAt(UInt8(ascii: ",")) }
}
