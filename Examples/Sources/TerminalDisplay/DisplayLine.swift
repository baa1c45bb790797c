// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// One line as it is to be shown: pieces of text, each of which plays a part.
public struct DisplayLine: Sendable, Hashable {
    /// What a piece of text is.
    public enum Role: Sendable, Hashable {
        /// Text like any other.
        case plain
        /// What is there of something.
        case bar
        /// What is missing of it.
        case track
        /// What went well.
        case good
        /// What did not.
        case bad
        /// What matters less.
        case faint

        /// The number of the terminal's rendition; nil for none.
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

    /// A piece of text.
    struct Piece: Sendable, Hashable {
        var text: String
        var role: Role
    }

    private(set) var pieces: [Piece] = []

    /// Makes a line of one piece.
    public init(_ text: String = "", _ role: Role = .plain) {
        add(text, role)
    }

    /// Adds a piece at the end.
    public mutating func add(_ text: String, _ role: Role = .plain) {
        if !text.isEmpty { pieces.append(Piece(text: text, role: role)) }
    }

    /// The text alone.
    public var text: String { pieces.map(\.text).joined() }

    /// How many columns it takes up.
    public var columns: Int { pieces.reduce(0) { $0 + DisplayText.columns(of: $1.text) } }

    /// The text with what colours it, if it is to be coloured.
    func encoded(usesColor: Bool) -> String {
        guard usesColor else { return text }
        return pieces.map { piece in
            piece.role.rendition.map { "\u{1B}[\($0)m\(piece.text)\u{1B}[0m" } ?? piece.text
        }.joined()
    }
}
