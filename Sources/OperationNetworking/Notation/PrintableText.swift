// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// Text from servers comes into errors and logs: header values, names in JSON, messages of libcurl. A terminal obeys
// control characters, and a line break begins a line of a log that the library did not write.
extension String {
    /// The text without the characters that control a terminal, break a line or change the direction of writing.
    ///
    /// Control characters (C0, DEL, C1) and separators of lines and paragraphs become blanks. Invisible characters,
    /// such as bidirectional overrides, are removed. The two invisible characters that some scripts and emoji need
    /// between letters stay.
    ///
    /// - Parameter keepsLines: Whether line feeds and tabs stay, as in the text of a body. The default is `false`.
    package func printable(keepsLines: Bool = false) -> String {
        // Most texts are ASCII and have nothing to replace.
        if utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) { return self }
        var result = String.UnicodeScalarView()
        for scalar in unicodeScalars {
            if keepsLines, scalar == "\n" || scalar == "\t" {
                result.append(scalar)
                continue
            }
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator: result.append(" ")
            case .format where scalar != "\u{200C}" && scalar != "\u{200D}": break
            default: result.append(scalar)
            }
        }
        return String(result)
    }

    /// Returns the printable text of several lines, such as a body, for a log.
    ///
    /// All lines but the first are indented.
    var indentedPrintable: String { printable(keepsLines: true).replacing("\n", with: "\n  ") }
}
