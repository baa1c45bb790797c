// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What `--help` shows.
enum HelpText {
    static let text: String = {
        var lines = [
            "opget: downloads files, goes on where it stopped, and checks what it got.",
            "",
            "Usage: opget [OPTION]... URL...",
            "       opget [OPTION]... -i LIST",
            "",
        ]
        lines += Option.all.flatMap(describe)
        lines += [
            "",
            "A line of a list is a URL, and behind it, if you like, sha256=HEX (or sha1, md5, crc32) and out=NAME.",
            "Empty lines and lines that begin with # are left out.",
            "",
            "What was received stays when opget is interrupted or killed: hidden files beside where the file will be.",
            "Run the same command again to go on. With --continue files that stand in their places are left alone: only",
            "opget's own parts are gone on with, and of a file that is there only a checksum is looked at. If the file",
            "on the server has changed meanwhile, it is begun anew.",
            "",
            "opget does not write to the standard output, rename files whose names are taken, go on with the files of",
            "other programs, or send anything but GET and HEAD; and it has no options for proxies and certificates.",
            "",
            "Exit status, of several failures that of the first in the order of the URLs:",
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
