// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Numbers as forms have them.
enum FormNumber {
    /// The shortest digits that give the number again; whole numbers without a fraction.
    static func text(_ number: some BinaryFloatingPoint & LosslessStringConvertible) -> String {
        let text = String(number)
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
}
