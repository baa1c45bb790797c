// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What feeds the results of one or more dependencies into an operation just before its body.
///
/// It goes with its edges: taken back are all of them and it, or it can no longer be given.
struct DependencyInput {
    private var edgeCount: Int
    /// Whether some of its edges were taken back and others were not.
    private(set) var isBroken = false
    let feed: @Sendable (ManagedOperation) -> Void

    init(edgeCount: Int, feed: @escaping @Sendable (ManagedOperation) -> Void) {
        self.edgeCount = edgeCount
        self.feed = feed
    }

    /// Notes that one of its edges was taken back; returns whether that was the last.
    mutating func removeEdge() -> Bool {
        edgeCount -= 1
        isBroken = true
        return edgeCount == 0
    }
}

/// An input that is added together with the last of its edges, in one step: the operation may be started at any moment.
struct NewDependencyInput {
    /// Its other edges, which were added before.
    var earlierEdges: [DependencyEdge] = []
    let feed: @Sendable (ManagedOperation) -> Void
}

extension ManagedOperation.Core {
    /// Adds what is called just before the body, in the order of adding.
    mutating func add(_ input: NewDependencyInput, lastEdge: DependencyEdge?) {
        let extras = need()
        // The edges name the input by this number. No other input of the operation has the same number.
        let number = UInt32(truncatingIfNeeded: extras.inputs.lastID + 1)
        for edge in input.earlierEdges { edge.inputNumber = number }
        lastEdge?.inputNumber = number
        let edgeCount = input.earlierEdges.count + (lastEdge == nil ? 0 : 1)
        extras.inputs.append(DependencyInput(edgeCount: edgeCount, feed: input.feed), id: UInt64(number))
    }
}

extension OperationExtras {
    /// Takes the inputs back to which edges led that were removed; what it returns is let go of outside the lock.
    func removeInputs(of links: [DependencyLinks.Upstream]) -> [DependencyInput] {
        var removed: [DependencyInput] = []
        for number in links.map({ UInt64($0.edge.inputNumber) }) where number != 0 {
            let isLast = inputs.update(number) { $0.removeEdge() }
            if isLast == true, let input = inputs.remove(number) { removed.append(input) }
        }
        return removed
    }
}

extension ManagedOperation {
    /// Waits for several operations, for all or none, and is fed when they ended.
    final func connect(
        to sources: [(upstream: Operation, judge: DependencyEdge.Judge)],
        feeding feed: @escaping @Sendable (ManagedOperation) -> Void
    ) throws(DependencyError) {
        let feed = feeding(feed)
        guard let last = sources.last else { return try addInput(feed) }
        var added: [DependencyEdge] = []
        do throws(DependencyError) {
            for source in sources.dropLast() { added.append(try connect(to: source.upstream, judge: source.judge)) }
            let input = NewDependencyInput(earlierEdges: added, feed: feed)
            try connect(to: last.upstream, judge: last.judge, input: input)
        } catch {
            for (edge, source) in zip(added, sources) { remove(edge, to: source.upstream) }
            throw error
        }
    }

    /// Adds an input that comes from no dependency at all.
    private func addInput(_ feed: @escaping @Sendable (ManagedOperation) -> Void) throws(DependencyError) {
        let isTooLate = core.withLock { core in
            guard core.machine.acceptsDependencies else { return core.machine.ending == nil || core.machine.isStarted }
            core.add(NewDependencyInput(feed: feed), lastEdge: nil)
            return false
        }
        if isTooLate { throw .alreadyStarted(displayName, dependency: "inputs") }
    }
}
