// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A value on its way to a form.
///
/// An object, because containers of an `Encoder` may be filled in any order and at any time. Not Sendable on purpose: it
/// lives for one call.
final class FormNode {
    enum Content {
        case empty
        case null
        case text(String)
        case list([FormNode])
        case keyed([(key: String, node: FormNode)])
    }

    var content = Content.empty

    /// A new node at the end of the list.
    func appended() -> FormNode {
        let node = FormNode()
        if case .list(var nodes) = content {
            content = .empty
            nodes.append(node)
            content = .list(nodes)
        } else {
            content = .list([node])
        }
        return node
    }

    /// A new node under a key.
    func child(_ key: String) -> FormNode {
        guard case .keyed(var pairs) = content else {
            let node = FormNode()
            content = .keyed([(key, node)])
            return node
        }
        let node = FormNode()
        content = .empty
        pairs.append((key, node))
        content = .keyed(pairs)
        return node
    }
}
