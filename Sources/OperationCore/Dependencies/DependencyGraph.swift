// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Adds edges between operations of this package, and refuses those that would close a cycle.
///
/// Adding is the only thing that needs to see more than two operations. It is done under one lock for the process, so
/// that two threads cannot each add half of a cycle; ends, starts and cancellations never take it.
///
/// A cycle that runs through a foreign operation or through a ``MappedOperation``, which waits for its original without an
/// edge, is not seen.
enum DependencyGraph {
    private static let lock = Locked(())

    /// Makes `downstream` wait for `upstream`.
    static func connect(
        _ downstream: ManagedOperation, to upstream: ManagedOperation, judge: DependencyEdge.Judge?,
        input: NewDependencyInput? = nil
    ) throws(DependencyError) -> DependencyEdge {
        guard downstream !== upstream else { throw .cycle([downstream.displayName, downstream.displayName]) }
        // The search holds on to operations whose last other reference may go meanwhile. They are let go of after the
        // lock, since freeing an operation runs what its user wrote.
        var search: CycleSearch?
        let edge = DependencyEdge(to: downstream, judge: judge)
        let inserted = lock.withLock { _ -> Insertion in
            if mayClose(from: downstream, to: upstream) {
                search = CycleSearch(from: downstream, to: upstream)
                if search?.run() == true { return .refused }
            }
            return insert(edge, from: downstream, to: upstream, isPlain: judge == nil, input: input)
        }
        withExtendedLifetime(search) {}
        switch inserted {
        case .waiting: downstream.signalDependencyAdded()
        case .needless: break
        case .upstreamEnded: edge.upstreamDidEnd(upstream)
        case .tooLate: throw .alreadyStarted(downstream.displayName, dependency: upstream.displayName)
        case .refused: throw .cycle(search?.path ?? [])
        }
        return edge
    }

    /// Whether both have other links: without, no cycle can run through them.
    private static func mayClose(from downstream: ManagedOperation, to upstream: ManagedOperation) -> Bool {
        downstream.core.withLock { ($0.extras?.links.downstreamCount ?? 0) > 0 }
            && upstream.core.withLock { ($0.extras?.links.upstreamCount ?? 0) > 0 }
    }

    private enum Insertion {
        case waiting
        case upstreamEnded
        case needless
        case tooLate
        case refused
    }

    private static func insert(
        _ edge: DependencyEdge, from downstream: ManagedOperation, to upstream: ManagedOperation, isPlain: Bool,
        input: NewDependencyInput?
    ) -> Insertion {
        let insertion = downstream.core.withLock {
            $0.insertUpstream(upstream, edge: edge, watcher: nil, isPlain: isPlain, input: input)
        }
        switch insertion {
        case .needless: return .needless
        case .tooLate: return .tooLate
        case .added: break
        }
        return upstream.core.withLock { core in
            guard !core.machine.isFinished else { return .upstreamEnded }
            core.need().links.addDownstream(edge)
            return .waiting
        }
    }
}

extension ManagedOperation.Core {
    enum UpstreamInsertion {
        case added
        /// There is such an edge, or the operation has an outcome and will never run its body.
        case needless
        case tooLate
    }

    mutating func insertUpstream(
        _ upstream: Operation, edge: DependencyEdge, watcher: ForeignWatcher?, isPlain: Bool,
        input: NewDependencyInput? = nil
    ) -> UpstreamInsertion {
        guard machine.acceptsDependencies else {
            return machine.ending == nil || machine.isStarted ? .tooLate : .needless
        }
        if isPlain, extras?.links.dependsOn(upstream) == true { return .needless }
        need().links.add(edge, to: upstream, watcher: watcher)
        if let input { add(input, lastEdge: edge) }
        return .added
    }
}

/// Looks for a way from the operation that is to wait to the one that it is to wait for.
///
/// Two searches go on side by side, one along the dependencies of the upstream operation and one along the dependents of
/// the downstream one, always the one that has cost less so far, and the first to run out decides. So an edge to or from
/// an operation that has few others costs little, in whatever order a graph is built.
private struct CycleSearch {
    private struct Frontier {
        var found: [ManagedOperation]
        var parents: [ObjectIdentifier: Int] = [:]
        var next = 0
        private var cost = 0
        private var visitCost: Int?
        /// Kept until the search is let go of, outside the lock: one of them may be freed by that.
        private var met: [ManagedOperation] = []

        init(_ start: ManagedOperation) {
            found = [start]
            parents[ObjectIdentifier(start)] = -1
        }

        /// The links looked at so far, those of the next visit included; nil if there is nothing left to visit.
        mutating func costOfNext(_ count: (ManagedOperation) -> Int) -> Int? {
            guard next < found.count else { return nil }
            if visitCost == nil { visitCost = 1 + count(found[next]) }
            return cost + (visitCost ?? 0)
        }

        /// Visits the next operation; returns whether `goal` is a neighbour of it.
        mutating func visit(
            goal: ManagedOperation, _ neighbours: (ManagedOperation) -> [ManagedOperation]
        ) -> Bool {
            let visited = next
            next += 1
            cost += visitCost ?? 1
            visitCost = nil
            met = neighbours(found[visited])
            for neighbour in met where parents[ObjectIdentifier(neighbour)] == nil {
                parents[ObjectIdentifier(neighbour)] = visited
                found.append(neighbour)
                if neighbour === goal { return true }
            }
            return false
        }

        /// The way back from the last operation found to the start.
        var path: [String] {
            var path: [String] = []
            var position = found.count - 1
            while position >= 0 {
                path.append(found[position].displayName)
                position = parents[ObjectIdentifier(found[position])] ?? -1
            }
            return path
        }
    }

    private let downstream: ManagedOperation
    private let upstream: ManagedOperation
    private var up: Frontier
    private var down: Frontier
    /// Which search found the way: that from below, along the dependents, or that from above.
    private var meeting: Meeting?

    private enum Meeting { case above, below }

    init(from downstream: ManagedOperation, to upstream: ManagedOperation) {
        self.downstream = downstream
        self.upstream = upstream
        up = Frontier(upstream)
        down = Frontier(downstream)
    }

    /// Whether the new edge would close a cycle.
    mutating func run() -> Bool {
        while true {
            let downCost = down.costOfNext { $0.core.withLock { $0.extras?.links.downstreamCount ?? 0 } }
            let upCost = up.costOfNext { $0.core.withLock { $0.extras?.links.upstreamCount ?? 0 } }
            guard let downCost, let upCost else { return false }
            if downCost <= upCost {
                let isFound = down.visit(goal: upstream) { $0.core.withLock { $0.extras?.links.liveDownstream ?? [] } }
                if isFound { meeting = .above }
            } else {
                let isFound = up.visit(goal: downstream) { $0.core.withLock { $0.extras?.links.liveUpstream ?? [] } }
                if isFound { meeting = .below }
            }
            if meeting != nil { return true }
        }
    }

    /// The cycle, each operation waiting for the next.
    ///
    /// Not to be asked for under a lock: a name may be the user's code.
    var path: [String] {
        switch meeting {
        // From upstream, which waits for … which waits for downstream.
        case .above: [downstream.displayName] + down.path
        case .below: [downstream.displayName] + up.path.reversed()
        case nil: []
        }
    }
}
