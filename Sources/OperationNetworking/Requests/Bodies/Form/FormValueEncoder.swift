// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Lets one value write itself into one node.
struct FormValueEncoder: Encoder {
    let options: FormEncoder
    let node: FormNode
    let codingPath: [any CodingKey]
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    init(_ options: FormEncoder, node: FormNode, path: [any CodingKey]) {
        self.options = options
        self.node = node
        codingPath = path
    }

    func write(_ value: some Encodable) throws {
        guard codingPath.count <= MixedValue.deepest else {
            throw FormEncodingError(
                .tooDeep, at: codingPath, "It is nested more than \(MixedValue.deepest) levels deep.")
        }
        switch value {
        case let date as Date:
            guard date.timeIntervalSince1970.isFinite else { throw notANumber() }
            write(text: options.dates.text(date))
        case let data as Data: write(text: options.data.text(data))
        case let url as URL: write(text: url.absoluteString)
        case let decimal as Decimal:
            guard decimal.isFinite else { throw notANumber() }
            write(text: decimal.description)
        case let dictionary as any DictionaryOfText:
            node.content = .keyed([])
            for (key, element) in dictionary.sortedPairs {
                try FormValueEncoder(options, node: node.child(key), path: codingPath + [DataKey(key)]).write(element)
            }
        default: try value.encode(to: self)
        }
    }

    func write(text: String) {
        node.content = .text(text)
    }

    func write(_ number: some BinaryFloatingPoint & LosslessStringConvertible) throws {
        guard number.isFinite else { throw notANumber() }
        write(text: FormNumber.text(number))
    }

    private func notANumber() -> FormEncodingError {
        FormEncodingError(
            .notANumber, at: codingPath,
            "The number, or date, is infinite or none at all, which a form cannot say. Give it as text.")
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        if case .keyed = node.content {} else { node.content = .keyed([]) }
        return KeyedEncodingContainer(FormKeyedContainer<Key>(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        if case .list = node.content {} else { node.content = .list([]) }
        return FormListContainer(encoder: self)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { FormSingleContainer(encoder: self) }
}

/// A dictionary whose keys are text, and thus the keys of the form.
private protocol DictionaryOfText {
    var sortedPairs: [(String, any Encodable)] { get }
}

extension Dictionary: DictionaryOfText where Key == String, Value: Encodable {
    fileprivate var sortedPairs: [(String, any Encodable)] {
        sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }
}
