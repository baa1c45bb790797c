// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A line of text whose pieces have different roles.
public struct DisplayLine: Sendable, Hashable {
    /// The role of a piece of text, which determines its color.
    public enum Role: Sendable, Hashable {
        /// Ordinary text.
        case plain
        /// The completed part of a bar, or a title.
        case bar
        /// The remaining part of a bar.
        case track
        /// A success.
        case good
        /// A failure.
        case bad
        /// Less important text.
        case faint

        /// The number of the terminal's color or style, or nil for ordinary text.
        var rendition: Int? {
            switch self {
            case .plain: nil
            case .bar: 36
            case .track, .faint: 2
            case .good: 32
            case .bad: 31
            }
        }
    }

    /// A piece of text with a role.
    struct Piece: Sendable, Hashable {
        var text: String
        var role: Role
    }

    private(set) var pieces: [Piece] = []

    /// Creates a line with one piece of text.
    public init(_ text: String = "", _ role: Role = .plain) {
        add(text, role)
    }

    /// Adds a piece of text at the end.
    public mutating func add(_ text: String, _ role: Role = .plain) {
        if !text.isEmpty { pieces.append(Piece(text: text, role: role)) }
    }

    /// The text of all pieces.
    public var text: String { pieces.map(\.text).joined() }

    /// The number of terminal columns that the line occupies.
    public var columns: Int { pieces.reduce(0) { $0 + DisplayText.columns(of: $1.text) } }

    /// Returns the text, with the escape sequences for its colors if the terminal uses color.
    func encoded(usesColor: Bool) -> String {
        guard usesColor else { return text }
        return pieces.map { piece in
            piece.role.rendition.map { "\u{1B}[\($0)m\(piece.text)\u{1B}[0m" } ?? piece.text
        }.joined()
    }
}
