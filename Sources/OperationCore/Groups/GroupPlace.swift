// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Where in a tree of groups one of them is: its name, and the place of the group around it.
///
/// One step for each group that cancelled its children, shared by all that is beneath it.
package final class GroupPlace: Sendable, CustomStringConvertible {
    private let name: String
    private let outer: GroupPlace?
    private let depth: Int

    /// How many names are kept: so freeing and describing it takes no deep stack.
    private static let most = 16

    init(_ name: String?, in outer: GroupPlace?) {
        self.name = name ?? "group"
        depth = (outer?.depth ?? 0) + 1
        // Of what is nested deeper, the inner half is kept.
        self.outer = depth % Self.most == 0 ? outer?.cut(to: Self.most / 2) : outer
    }

    private init(_ name: String, in outer: GroupPlace?, depth: Int) {
        self.name = name
        self.outer = outer
        self.depth = depth
    }

    private func cut(to count: Int) -> GroupPlace {
        var kept: [GroupPlace] = []
        var next: GroupPlace? = self
        while let place = next, kept.count < count {
            kept.append(place)
            next = place.outer
        }
        let start: GroupPlace? = next == nil ? nil : GroupPlace("…", in: nil, depth: 0)
        let copy = kept.reversed().reduce(start) { GroupPlace($1.name, in: $0, depth: $1.depth) }
        return copy ?? self
    }

    /// The names from the outermost inwards.
    package var names: [String] {
        var names: [String] = []
        var next: GroupPlace? = self
        while let place = next {
            names.append(place.name)
            next = place.outer
        }
        return names.reversed()
    }

    package var description: String { names.joined(separator: " › ") }
}
