// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What a terminal can show.
public struct DisplayStyle: Sendable, Hashable {
    /// Whether lines are drawn again in their place; if not, they are only written one after another.
    public var isLive: Bool
    /// Whether there are colours.
    public var usesColor: Bool
    /// Whether there are other signs than those of ASCII.
    public var usesUnicode: Bool

    /// Makes a style.
    public init(isLive: Bool = true, usesColor: Bool = true, usesUnicode: Bool = true) {
        self.isLive = isLive
        self.usesColor = usesColor
        self.usesUnicode = usesUnicode
    }

    /// One line after another, as for files and pipes.
    public static let plain = DisplayStyle(isLive: false, usesColor: false, usesUnicode: true)

    /// What suits an output and its environment.
    ///
    /// In a pipe or a file, and where `TERM` is `dumb` or missing, lines are plain. `NO_COLOR` takes the colours away and
    /// leaves the bars (no-color.org). Signs beyond ASCII need a locale in UTF-8, as `LC_ALL`, `LC_CTYPE` or `LANG` say.
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
    /// How wide it is.
    public var columns: Int
    /// How high it is.
    public var rows: Int

    /// Makes a size; one that a terminal does not know, and says is 0, is the usual 80 by 24.
    public init(columns: Int, rows: Int) {
        self.columns = columns > 0 ? columns : 80
        self.rows = rows > 0 ? rows : 24
    }
}
