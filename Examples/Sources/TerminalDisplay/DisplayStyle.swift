// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// The features of a terminal.
public struct DisplayStyle: Sendable, Hashable {
    /// A Boolean value that indicates whether lines are redrawn in place, instead of being written one after another.
    public var isLive: Bool
    /// A Boolean value that indicates whether the terminal uses color.
    public var usesColor: Bool
    /// A Boolean value that indicates whether the output can contain characters beyond ASCII.
    public var usesUnicode: Bool

    /// Creates a style.
    public init(isLive: Bool = true, usesColor: Bool = true, usesUnicode: Bool = true) {
        self.isLive = isLive
        self.usesColor = usesColor
        self.usesUnicode = usesUnicode
    }

    /// The style for files and pipes, which writes one line after another.
    public static let plain = DisplayStyle(isLive: false, usesColor: false, usesUnicode: true)

    /// Returns the style for an output and its environment.
    ///
    /// The output is plain in a pipe, in a file, or if `TERM` is `dumb` or missing. `NO_COLOR` disables the colors but
    /// not the bars (no-color.org). Characters beyond ASCII require a UTF-8 locale in `LC_ALL`, `LC_CTYPE` or `LANG`.
    public static func detected(isTerminal: Bool, environment: [String: String]) -> DisplayStyle {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty } ?? ""
        let spelling = locale.lowercased().filter { $0 != "-" }
        let usesUnicode = spelling.hasSuffix("utf8") || spelling.contains("utf8@")
        let terminal = environment["TERM"] ?? ""
        guard isTerminal, !terminal.isEmpty, terminal != "dumb" else {
            return DisplayStyle(isLive: false, usesColor: false, usesUnicode: usesUnicode)
        }
        let usesColor = environment["NO_COLOR", default: ""].isEmpty
        return DisplayStyle(isLive: true, usesColor: usesColor, usesUnicode: usesUnicode)
    }

    var ellipsis: String { usesUnicode ? "…" : "..." }
    var goodSign: String { usesUnicode ? "✓" : "ok" }
    var badSign: String { usesUnicode ? "✗" : "!!" }
    var barSign: Character { usesUnicode ? "━" : "#" }
    var trackSign: Character { usesUnicode ? "─" : "-" }
}

/// The size of a terminal.
public struct TerminalSize: Sendable, Hashable {
    /// The number of columns.
    public var columns: Int
    /// The number of rows.
    public var rows: Int

    /// Creates a size, in which 80 columns and 24 rows replace the 0 of a terminal that does not know its size.
    public init(columns: Int, rows: Int) {
        self.columns = columns > 0 ? columns : 80
        self.rows = rows > 0 ? rows : 24
    }
}
