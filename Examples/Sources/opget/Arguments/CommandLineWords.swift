// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// The parsed words of a command line, with the options and their values, the operands, and all errors.
///
/// The forms of an option are `--name value`, `--name=value`, `-n value` and `-nvalue`. Several letters can follow one
/// hyphen. All words after `--` are operands, and so is a single `-`.
struct CommandLineWords: Sendable, Equatable {
    struct Given: Sendable, Equatable {
        let option: Option
        let value: String?
    }

    private(set) var given: [Given] = []
    private(set) var operands: [String] = []
    /// The errors as sentences, in the order of the words.
    private(set) var problems: [String] = []

    init(_ words: some Sequence<String>, options: [Option] = Option.all) {
        var rest = Array(words)[...]
        while let word = rest.popFirst() {
            if word == "--" {
                operands += rest
                break
            } else if word.hasPrefix("--") {
                readLong(word, &rest, options)
            } else if word.hasPrefix("-"), word != "-" {
                readLetters(word, &rest, options)
            } else {
                operands.append(word)
            }
        }
    }

    private mutating func readLong(_ word: String, _ rest: inout ArraySlice<String>, _ options: [Option]) {
        let halves = word.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = halves.first.map(String.init) ?? ""
        let attached = halves.count > 1 ? String(halves[1]) : nil
        guard let option = options.first(where: { $0.name == name }) else {
            let near = Self.nearest(to: name, options.map(\.name)).map { " Did you mean --\($0)?" } ?? ""
            return problems.append("There is no option --\(name).\(near)")
        }
        switch option.value {
        case .none:
            if attached != nil { return problems.append("--\(name) takes no value.") }
            given.append(Given(option: option, value: nil))
        case .optional:
            given.append(Given(option: option, value: attached))
        case .required(let kind):
            guard let value = attached ?? rest.popFirst() else {
                return problems.append("--\(name) needs a value: --\(name)=\(kind).")
            }
            given.append(Given(option: option, value: value))
        }
    }

    private mutating func readLetters(_ word: String, _ rest: inout ArraySlice<String>, _ options: [Option]) {
        var letters = word.dropFirst()
        while let letter = letters.popFirst() {
            guard let option = options.first(where: { $0.letter == letter }) else {
                return problems.append("There is no option -\(letter). See opget --help.")
            }
            guard case .required(let kind) = option.value else {
                given.append(Given(option: option, value: nil))
                continue
            }
            let attached = letters.isEmpty ? nil : String(letters)
            guard let value = attached ?? rest.popFirst() else {
                return problems.append("-\(letter) needs a value: -\(letter) \(kind).")
            }
            given.append(Given(option: option, value: value))
            return
        }
    }

    /// Returns the name that the user probably meant, or nil if no name is similar.
    static func nearest(to name: String, _ names: [String]) -> String? {
        let near = names.map { ($0, distance(name, $0)) }.filter { $0.1 <= max(name.count / 3, 1) }
        return near.min { $0.1 < $1.1 }?.0 ?? names.first { name.count > 2 && $0.hasPrefix(name) }
    }

    /// Returns the number of letters to insert, remove, replace or swap with a neighbor to turn one word into the
    /// other.
    static func distance(_ left: String, _ right: String) -> Int {
        let (left, right) = (Array(left), Array(right))
        guard !left.isEmpty, !right.isEmpty else { return max(left.count, right.count) }
        var before: [Int] = []
        var last = Array(0...right.count)
        for row in 1...left.count {
            var next = [row]
            for column in 1...right.count {
                let same = left[row - 1] == right[column - 1]
                var best = min(last[column] + 1, next[column - 1] + 1, last[column - 1] + (same ? 0 : 1))
                if row > 1, column > 1, left[row - 1] == right[column - 2], left[row - 2] == right[column - 1] {
                    best = min(best, before[column - 2] + 1)
                }
                next.append(best)
            }
            (before, last) = (last, next)
        }
        return last[right.count]
    }
}
