// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The text that `--help` prints.
enum HelpText {
    static let text: String = {
        var lines = [
            "opget: downloads files, resumes interrupted downloads, and verifies checksums.",
            "",
            "Usage: opget [OPTION]... URL...",
            "       opget [OPTION]... -i LIST",
            "",
            "Options, with the default values in parentheses:",
        ]
        lines += Option.all.flatMap(describe)
        let paragraphs = [
            "Each line of a list contains a URL, which sha256=HEX (or sha1, md5, crc32) and out=NAME may follow. "
                + "opget ignores empty lines and lines that begin with #.",
            "If opget is interrupted or killed, the received bytes stay in hidden files next to the destination. "
                + "To resume, run the same command again. With --continue, opget does not change files that already "
                + "exist. opget resumes only its own partial files, and checks an existing file only against its "
                + "checksum. If the file on the server has changed in the meantime, opget downloads it from the "
                + "beginning.",
            "opget does not write files to standard output, choose another name if a file exists, or resume the files "
                + "of other programs. opget sends only GET and HEAD requests, and has no options for proxies or "
                + "certificates.",
            "Exit status, for the first failed file in the order of the URLs:",
        ]
        for paragraph in paragraphs { lines += [""] + wrapped(paragraph, after: "") }
        for status in ExitStatus.allCases {
            let number = "\(status.rawValue)"
            lines += wrapped(status.meaning, after: String(repeating: " ", count: 6 - number.count) + number + "  ")
        }
        return lines.joined(separator: "\n") + "\n"
    }()

    /// The width of a terminal.
    private static let width = 80
    private static let column = 30

    private static func describe(_ option: Option) -> [String] {
        let letter = option.letter.map { "-\($0), " } ?? "    "
        let value =
            switch option.value {
            case .none: ""
            case .required(let kind): "=\(kind)"
            case .optional(let kind): "[=\(kind)]"
            }
        let head = "  \(letter)--\(option.name)\(value)"
        let isShort = head.count < column - 1
        let first = (isShort ? head : "").padding(toLength: column, withPad: " ", startingAt: 0)
        return (isShort ? [] : [head]) + wrapped(option.help, after: first)
    }

    /// Returns the lines of a text, the first of which begins with a prefix, and the others with as many spaces.
    private static func wrapped(_ text: String, after prefix: String) -> [String] {
        var (lines, line, isEmpty) = ([String](), prefix, true)
        for word in text.split(separator: " ") {
            if !isEmpty, line.count + 1 + word.count > width {
                lines.append(line)
                (line, isEmpty) = (String(repeating: " ", count: prefix.count), true)
            }
            line += (isEmpty ? "" : " ") + word
            isEmpty = false
        }
        return lines + [line]
    }
}
