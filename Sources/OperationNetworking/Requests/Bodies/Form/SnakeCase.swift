// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Names with low lines between their words.
enum SnakeCase {
    /// A word begins at a capital letter after a small one, and at the last of several capitals if a small one follows.
    static func text(_ name: String) -> String {
        let letters = Array(name)
        var result = ""
        for (index, letter) in letters.enumerated() {
            let follows = index + 1 < letters.count && letters[index + 1].isLowercase
            if letter.isUppercase, index > 0, letters[index - 1] != "_",
                !letters[index - 1].isUppercase || follows
            {
                result += "_"
            }
            result += letter.lowercased()
        }
        return result
    }
}
