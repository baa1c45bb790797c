// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A key that is a part of the data, and no name in the program: no rule for keys changes it.
struct DataKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(_ text: String) {
        stringValue = text
        intValue = nil
    }

    init(index: Int) {
        stringValue = "\(index)"
        intValue = index
    }

    init?(stringValue: String) { self.init(stringValue) }
    init?(intValue: Int) { self.init(index: intValue) }
}
