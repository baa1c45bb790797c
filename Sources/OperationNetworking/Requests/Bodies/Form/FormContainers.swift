// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Writes values under keys.
struct FormKeyedContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: FormValueEncoder
    var codingPath: [any CodingKey] { encoder.codingPath }

    private func child(_ key: some CodingKey) -> FormValueEncoder {
        let name = key is DataKey ? key.stringValue : encoder.options.keys.text(key.stringValue)
        return FormValueEncoder(encoder.options, node: encoder.node.child(name), path: codingPath + [key])
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

/// Writes values one after another.
struct FormListContainer: UnkeyedEncodingContainer {
    let encoder: FormValueEncoder
    private(set) var count = 0
    var codingPath: [any CodingKey] { encoder.codingPath }

    init(encoder: FormValueEncoder) {
        self.encoder = encoder
    }

    private mutating func next() -> FormValueEncoder {
        let path = codingPath + [DataKey(index: count)]
        count += 1
        return FormValueEncoder(encoder.options, node: encoder.node.appended(), path: path)
    }

    mutating func encodeNil() throws { next().node.content = .null }
    mutating func encode(_ value: some Encodable) throws { try next().write(value) }

    mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
        next().container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { next().unkeyedContainer() }
    mutating func superEncoder() -> any Encoder { next() }
}

/// Writes one value that has no parts.
struct FormSingleContainer: SingleValueEncodingContainer {
    let encoder: FormValueEncoder
    var codingPath: [any CodingKey] { encoder.codingPath }

    mutating func encodeNil() throws { encoder.node.content = .null }
    mutating func encode(_ value: Bool) throws { encoder.write(text: encoder.options.booleans.text(value)) }
    mutating func encode(_ value: String) throws { encoder.write(text: value) }
    mutating func encode(_ value: Double) throws { try encoder.write(value) }
    mutating func encode(_ value: Float) throws { try encoder.write(value) }
    mutating func encode(_ value: Int) throws { encoder.write(text: "\(value)") }
    mutating func encode(_ value: Int8) throws { encoder.write(text: "\(value)") }
    mutating func encode(_ value: Int16) throws { encoder.write(text: "\(value)") }
    mutating func encode(_ value: Int32) throws { encoder.write(text: "\(value)") }
    mutating func encode(_ value: Int64) throws { encoder.write(text: "\(value)") }
    mutating func encode(_ value: Int128) throws { encoder.write(text: "\(value)") }
    mutating func encode(_ value: UInt) throws { encoder.write(text: "\(value)") }
    mutating func encode(_ value: UInt8) throws { encoder.write(text: "\(value)") }
    mutating func encode(_ value: UInt16) throws { encoder.write(text: "\(value)") }
    mutating func encode(_ value: UInt32) throws { encoder.write(text: "\(value)") }
    mutating func encode(_ value: UInt64) throws { encoder.write(text: "\(value)") }
    mutating func encode(_ value: UInt128) throws { encoder.write(text: "\(value)") }
    mutating func encode(_ value: some Encodable) throws { try encoder.write(value) }
}
