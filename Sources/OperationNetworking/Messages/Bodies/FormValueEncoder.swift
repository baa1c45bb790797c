// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// An encoder that writes one value to one node.
struct FormValueEncoder: Encoder {
    let options: FormEncoder
    let node: FormNode
    let codingPath: [any CodingKey]
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func write(_ value: some Encodable) throws {
        guard codingPath.count <= MixedValue.deepest else { throw FormEncodingError.tooDeep(at: codingPath) }
        switch value {
        case let date as Date:
            guard date.timeIntervalSince1970.isFinite else { throw notANumber() }
            write(text: options.date(date))
        case let data as Data: write(text: data.base64EncodedString())
        case let url as URL: write(text: url.absoluteString)
        case let decimal as Decimal:
            guard decimal.isFinite else { throw notANumber() }
            write(text: decimal.description)
        case let dictionary as any DictionaryOfText:
            node.content = .keyed([])
            for (key, element) in dictionary.sortedPairs {
                let path = codingPath + [DataKey(key)]
                try FormValueEncoder(options: options, node: node.child(key), codingPath: path).write(element)
            }
        default: try value.encode(to: self)
        }
    }

    func write(text: String) {
        node.content = .text(text)
    }

    func write(_ number: some BinaryFloatingPoint & LosslessStringConvertible) throws {
        guard number.isFinite else { throw notANumber() }
        write(text: number.formText)
    }

    private func notANumber() -> FormEncodingError {
        FormEncodingError(
            .notANumber, at: codingPath,
            "The number or the date is not finite, so a form cannot contain it. Send it as text.")
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        if case .keyed = node.content {} else { node.content = .keyed([]) }
        return KeyedEncodingContainer(FormKeyedContainer<Key>(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        if case .list = node.content {} else { node.content = .list([]) }
        return FormListContainer(encoder: self)
    }
}

/// A dictionary whose keys have a text, such as strings, integers and enumerations, which becomes the key of the form.
private protocol DictionaryOfText {
    var sortedPairs: [(String, any Encodable)] { get }
}

extension Dictionary: DictionaryOfText where Key: CodingKeyRepresentable, Value: Encodable {
    fileprivate var sortedPairs: [(String, any Encodable)] {
        map { ($0.key.codingKey.stringValue, $0.value as any Encodable) }.sorted { $0.0 < $1.0 }
    }
}

/// A container that encodes values for keys.
struct FormKeyedContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: FormValueEncoder
    var codingPath: [any CodingKey] { encoder.codingPath }

    private func child(_ key: some CodingKey) -> FormValueEncoder {
        let name = key is DataKey ? key.stringValue : encoder.options.key(key.stringValue)
        return FormValueEncoder(
            options: encoder.options, node: encoder.node.child(name), codingPath: codingPath + [key])
    }

    mutating func encodeNil(forKey key: Key) throws { child(key).node.content = .null }
    mutating func encode(_ value: some Encodable, forKey key: Key) throws { try child(key).write(value) }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        child(key).container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        child(key).unkeyedContainer()
    }

    mutating func superEncoder() -> any Encoder { child(DataKey("super")) }
    mutating func superEncoder(forKey key: Key) -> any Encoder { child(key) }
}

/// A container that encodes the elements of an array.
struct FormListContainer: UnkeyedEncodingContainer {
    let encoder: FormValueEncoder
    private(set) var count = 0
    var codingPath: [any CodingKey] { encoder.codingPath }

    private mutating func next() -> FormValueEncoder {
        let path = codingPath + [DataKey(index: count)]
        count += 1
        return FormValueEncoder(options: encoder.options, node: encoder.node.appended(), codingPath: path)
    }

    mutating func encodeNil() throws { next().node.content = .null }
    mutating func encode(_ value: some Encodable) throws { try next().write(value) }

    mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
        next().container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { next().unkeyedContainer() }
    mutating func superEncoder() -> any Encoder { next() }
}

extension FormValueEncoder: SingleValueEncodingContainer {
    func singleValueContainer() -> any SingleValueEncodingContainer { self }

    func encodeNil() throws { node.content = .null }
    func encode(_ value: Bool) throws { write(text: options.boolean(value)) }
    func encode(_ value: String) throws { write(text: value) }
    func encode(_ value: Double) throws { try write(value) }
    func encode(_ value: Float) throws { try write(value) }
    func encode(_ value: Int) throws { write(text: "\(value)") }
    func encode(_ value: Int8) throws { write(text: "\(value)") }
    func encode(_ value: Int16) throws { write(text: "\(value)") }
    func encode(_ value: Int32) throws { write(text: "\(value)") }
    func encode(_ value: Int64) throws { write(text: "\(value)") }
    func encode(_ value: Int128) throws { write(text: "\(value)") }
    func encode(_ value: UInt) throws { write(text: "\(value)") }
    func encode(_ value: UInt8) throws { write(text: "\(value)") }
    func encode(_ value: UInt16) throws { write(text: "\(value)") }
    func encode(_ value: UInt32) throws { write(text: "\(value)") }
    func encode(_ value: UInt64) throws { write(text: "\(value)") }
    func encode(_ value: UInt128) throws { write(text: "\(value)") }
    func encode(_ value: some Encodable) throws { try write(value) }
}

/// A node in the tree of values from which a form is written.
///
/// The node is an object, because the containers of an `Encoder` may be filled in any order and at any time. The class
/// is not `Sendable` on purpose, because a node exists only during one call.
final class FormNode {
    enum Content {
        case empty
        case null
        case text(String)
        case list([FormNode])
        case keyed([(key: String, node: FormNode)])
    }

    var content = Content.empty
    /// The number of nodes around this one.
    private let depth: Int
    /// Whether a node is missing because it would be too deep.
    private(set) var isTooDeep = false

    init(depth: Int = 0) {
        self.depth = depth
    }

    /// Returns a node for this one, or `nil` if the node would be too deep.
    ///
    /// The tree is written and released in a recursion. A nested container cannot throw an error, so the writer does.
    private func inner() -> FormNode? {
        guard depth < MixedValue.deepest else {
            isTooDeep = true
            return nil
        }
        return FormNode(depth: depth + 1)
    }

    /// Adds a node at the end of the list, and returns the node.
    func appended() -> FormNode {
        guard let node = inner() else { return FormNode(depth: depth) }
        if case .list(var nodes) = content {
            content = .empty
            nodes.append(node)
            content = .list(nodes)
        } else {
            content = .list([node])
        }
        return node
    }

    /// Adds a node for a key, and returns the node.
    func child(_ key: String) -> FormNode {
        guard let node = inner() else { return FormNode(depth: depth) }
        guard case .keyed(var pairs) = content else {
            content = .keyed([(key, node)])
            return node
        }
        content = .empty
        pairs.append((key, node))
        content = .keyed(pairs)
        return node
    }
}

extension BinaryFloatingPoint where Self: LosslessStringConvertible {
    /// The shortest digits that represent the number, without a fraction if the number is an integer.
    var formText: String {
        let text = String(self)
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
}

/// The text of dates in ISO 8601 and RFC 3339.
enum ISO8601Text {
    /// Returns a date in UTC, in whole seconds.
    static func text(_ date: Date) -> String {
        let limits = (-62_135_596_800.0, 253_402_300_799.0)
        let seconds = Int64(min(max(date.timeIntervalSince1970, limits.0), limits.1).rounded(.down))
        let days = Int((Double(seconds) / 86_400).rounded(.down))
        let rest = Int(seconds - Int64(days) * 86_400)
        let (year, month, day) = CivilDate.date(days: days)
        let date = [padded(year, 4), padded(month, 2), padded(day, 2)].joined(separator: "-")
        let time = [rest / 3600, rest / 60 % 60, rest % 60].map { padded($0, 2) }.joined(separator: ":")
        return "\(date)T\(time)Z"
    }

    private static func padded(_ number: Int, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
}

/// A key that is data and not a name in the program, so that no rule for keys changes it.
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

/// An encodable wrapper for a value of any kind.
///
/// The value can be `nil`, `NSNull`, any `Encodable` value, or an array or a dictionary of these.
struct MixedValue: Encodable {
    /// The maximum nesting depth, which prevents a stack overflow.
    static let deepest = 256

    private let value: Any?

    init(_ value: Any?) {
        self.value = value
    }

    func encode(to encoder: any Encoder) throws {
        func refuse(_ reason: String) -> EncodingError {
            EncodingError.invalidValue(
                value as Any, .init(codingPath: encoder.codingPath, debugDescription: reason))
        }
        guard encoder.codingPath.count <= Self.deepest else {
            throw refuse("The value is nested more than \(Self.deepest) levels deep.")
        }
        switch Self.unwrapped(value) {
        case nil, is NSNull:
            var container = encoder.singleValueContainer()
            try container.encodeNil()
        case let value as any Encodable:
            var container = encoder.singleValueContainer()
            try container.encode(value)
        case let list as [Any?]:
            var container = encoder.singleValueContainer()
            try container.encode(list.map(MixedValue.init))
        case let dictionary as [String: Any?]:
            // Encode a dictionary and not a keyed container, because its keys are data that no rule for keys may
            // change.
            var container = encoder.singleValueContainer()
            try container.encode(dictionary.mapValues(MixedValue.init))
        case let other?:
            throw refuse("The type \(type(of: other)) is not Encodable. Send the value as text or as a number.")
        }
    }

    /// Returns the value without the optionals around it.
    private static func unwrapped(_ value: Any?) -> Any? {
        guard let value else { return nil }
        guard let optional = value as? any AnyOptional else { return value }
        return unwrapped(optional.content)
    }
}

private protocol AnyOptional {
    var content: Any? { get }
}

extension Optional: AnyOptional {
    fileprivate var content: Any? { self }
}
