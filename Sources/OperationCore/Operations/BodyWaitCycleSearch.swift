// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A search for the reason why an operation cannot end while certain bodies wait for it.
///
/// The search collects the operations that must end first. An operation can end if nothing else must end first. If one
/// of several operations is enough, such as any holder of a category, an operation can end if one of them can. The
/// operations that are left wait, directly or through others, for each other or for the bodies.
struct BodyWaitCycleSearch {
    /// The number of operations that a search visits when a wait begins.
    static let fewOperations = 64
    /// The number of operations that a search visits when a wait has lasted for some time.
    static let manyOperations = 10_000

    private struct Node {
        let operation: ManagedOperation
        /// The body that must return before the operation can end.
        var body: ManagedOperation?
        /// The positions in `needs` of the operation's own needs.
        var needs: [Int] = []
        /// The positions in `needs` of the needs that the end of the operation meets.
        var uses: [Int] = []
        /// The number of needs that are not met.
        var unmet = 0
        var canEnd = false
    }

    private let bodies: [ObjectIdentifier: ManagedOperation]
    private var nodes: [Node] = []
    private var numbers: [ObjectIdentifier: Int] = [:]
    /// Sets of operations, one of which must end before `user` can end.
    private var needs: [(user: Int, others: [Int], isMet: Bool)] = []

    /// Returns the cycle that a wait of these bodies for an operation completes, or `nil` if there is none.
    static func cycle(
        from first: ManagedOperation, to bodies: [WaitingBody], visiting most: Int
    ) -> [ManagedOperation]? {
        var search = BodyWaitCycleSearch(bodies)
        if let body = search.bodies[ObjectIdentifier(first)] { return closed([first], by: body) }
        _ = search.number(of: first)
        return search.way(visiting: most).flatMap { way in
            way.last.map { closed(way.map(\.operation), by: $0.body ?? first) }
        }
    }

    /// Returns the cycle in which an operation waits, or `nil` if there is none.
    ///
    /// - Parameters:
    ///   - operation: An operation that has not begun, or a group that waits for its children.
    ///   - most: The maximum number of operations that the search visits.
    static func cycle(of operation: ManagedOperation, visiting most: Int = fewOperations) -> [ManagedOperation]? {
        var search = BodyWaitCycleSearch([WaitingBody(operation: operation, mayOutlive: false)])
        // This node represents the waiting operation. If another operation needs it, that is a separate node.
        search.nodes.append(Node(operation: operation))
        return search.way(visiting: most).map { closed($0.dropFirst().map(\.operation), by: operation) }
    }

    private init(_ bodies: [WaitingBody]) {
        // A group around a body ends after the body.
        var ending: [ObjectIdentifier: ManagedOperation] = [:]
        for body in bodies {
            var next: ManagedOperation? = body.operation
            while let operation = next, ending.updateValue(body.operation, forKey: ObjectIdentifier(operation)) == nil {
                next = operation.groupOfChild
                // If some results suffice for a group, it cancels the other children, and may end before the body.
                if body.mayOutlive, let group = next?.ownGroup, group.neededChildren(atMost: 0) == nil { break }
            }
        }
        self.bodies = ending
    }

    /// Creates a cycle from the path between the awaited operation and the operation that needs the body.
    private static func closed(_ way: [ManagedOperation], by body: ManagedOperation) -> [ManagedOperation] {
        way.last === body ? [body] + way : [body] + way + [body]
    }

    private mutating func number(of operation: ManagedOperation) -> Int {
        let id = ObjectIdentifier(operation)
        if let number = numbers[id] { return number }
        numbers[id] = nodes.count
        nodes.append(Node(operation: operation, body: bodies[id]))
        return nodes.count - 1
    }

    /// Returns the path from the first operation to an operation that needs a body, if the first one cannot end.
    private mutating func way(visiting most: Int) -> [Node]? {
        var position = 0
        var reachesBody = false
        while position < min(nodes.count, most) {
            defer { position += 1 }
            guard nodes[position].body == nil else { continue }
            for others in nodes[position].operation.needs(atMost: most) where !others.isEmpty {
                let numbers = others.map { number(of: $0) }
                for other in numbers {
                    nodes[other].uses.append(needs.count)
                    if nodes[other].body != nil { reachesBody = true }
                }
                nodes[position].needs.append(needs.count)
                nodes[position].unmet += 1
                needs.append((position, numbers, false))
            }
        }
        guard reachesBody else { return nil }
        findThoseThatCanEnd()
        return nodes[0].canEnd ? nil : wayToBody()
    }

    private mutating func findThoseThatCanEnd() {
        // An operation that was not visited has no needs here, and counts as one that can end.
        var ending = nodes.indices.filter { nodes[$0].body == nil && nodes[$0].needs.isEmpty }
        for number in ending { nodes[number].canEnd = true }
        while let number = ending.popLast() {
            for use in nodes[number].uses where !needs[use].isMet {
                needs[use].isMet = true
                let user = needs[use].user
                nodes[user].unmet -= 1
                guard nodes[user].unmet == 0 else { continue }
                nodes[user].canEnd = true
                ending.append(user)
            }
        }
    }

    private func wayToBody() -> [Node]? {
        var steps = [(number: 0, from: -1)]
        var seen: Set = [0]
        var position = 0
        while position < steps.count {
            for need in nodes[steps[position].number].needs where !needs[need].isMet {
                for next in needs[need].others where seen.insert(next).inserted {
                    steps.append((next, position))
                    guard nodes[next].body != nil else { continue }
                    var way: [Node] = []
                    var last = steps.count - 1
                    while last >= 0 {
                        way.append(nodes[steps[last].number])
                        last = steps[last].from
                    }
                    return way.reversed()
                }
            }
            position += 1
        }
        return nil
    }
}

extension ManagedOperation {
    /// Returns the known needs that must be met before the operation can end, each as a list of which one operation
    /// must end.
    ///
    /// - Parameter most: The maximum number of operations in a list. At most this number of a group's children is
    ///   included.
    fileprivate func needs(atMost most: Int) -> [[ManagedOperation]] {
        let (isOver, isDecided, waits, node, gate, host) = core.withLock { core in
            let isWaiting = !core.machine.isStarted && !core.isReady
            let extras = core.extras
            return (
                core.machine.isFinished, core.machine.ending != nil, extras?.bodyWaits ?? [],
                isWaiting ? core.node : nil, extras?.gate,
                core.machine.isStarted || core.machine.ending != nil ? nil : core.host
            )
        }
        if isOver { return [] }
        let awaited = waits.filter { $0.isLasting(isDecided: isDecided) }.map(\.operation)
        var all = awaited + (node?.liveUpstream ?? []) + (ownGroup?.neededChildren(atMost: most) ?? [])
        if let sharedRun { all.append(sharedRun.life) }
        // A barrier waits for all earlier entries of its queue, and finding them takes too long when a wait begins.
        if most > BodyWaitCycleSearch.fewOperations, let host {
            all += host.operationsBeforeBarriers(of: self, atMost: most).map(\.life)
        }
        let needs = [siblingsThatFillWidth(atMost: most)] + (gate?.needs(of: self, atMost: most) ?? [])
        return needs + all.map { [$0] }
    }
}

extension ManagedOperation {
    /// The active siblings of which one must end before this operation can begin, because their number is the group's
    /// width.
    ///
    /// The list is empty if the operation waits for something else, or if there are more siblings than `most`. The
    /// width of a group never changes.
    final func siblingsThatFillWidth(atMost most: Int = .max) -> [ManagedOperation] {
        let (group, slot) = core.withLock { core in
            // A child with a decided outcome ends without counting toward the width.
            let mayWait = !core.machine.isStarted && core.machine.ending == nil
            return (mayWait ? core.parent : nil, core.parentSlot)
        }
        return group?.childrenThatFillWidth(before: self, at: slot, atMost: most) ?? []
    }
}
