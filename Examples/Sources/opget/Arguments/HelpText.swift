// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The text that `--help` prints.
enum HelpText {
    static let text: String = {
        var lines = [
            "opget: downloads files, resumes interrupted downloads, and verifies checksums.",
            "",
            "Usage: opget [OPTION]... URL...",
            "       opget [OPTION]... -i LIST",
            "",
        ]
        lines += Option.all.flatMap(describe)
        lines += [
            "",
            "Each line of a list contains a URL. sha256=HEX (or sha1, md5, crc32) and out=NAME may follow it.",
            "Empty lines and lines that begin with # are ignored.",
            "",
            "If opget is interrupted or killed, the received bytes stay in hidden files next to the destination.",
            "To resume, run the same command again. With --continue, opget does not change files that already exist. "
                + "It",
            "resumes only its own partial files, and checks an existing file only against its checksum. If the file on",
            "the server has changed in the meantime, opget downloads it from the beginning.",
            "",
            "opget does not write files to standard output, choose another name if a file exists, or resume the files of",
            "other programs. It sends only GET and HEAD requests, and has no options for proxies or certificates.",
            "",
            "Exit status (if several files fail, that of the first failed file in the order of the URLs):",
        ]
        lines += ExitStatus.allCases.map { status in
            String(repeating: " ", count: 6 - "\(status.rawValue)".count) + "\(status.rawValue)  \(status.meaning)"
        }
        return lines.joined(separator: "\n") + "\n"
    }()

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
        guard head.count < column - 1 else { return [head, String(repeating: " ", count: column) + option.help] }
        return [head + String(repeating: " ", count: column - head.count) + option.help]
    }
}
