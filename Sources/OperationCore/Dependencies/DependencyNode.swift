// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import Synchronization

/// The place of one operation in the graph: its links, and how many of those it waits for have not ended.
///
/// Made with an operation's first link. It outlives the operation where others still hold links to it, so that they need
/// not know whether the operation is there.
final class DependencyNode: Sendable {
    private let links = Locked(DependencyLinks())
    private let unended = Atomic<Int>(0)

    /// Whether all those waited for have ended.
    var isClear: Bool { unended.load(ordering: .acquiring) == 0 }

    /// How many operations it was ever made to wait for.
    var additions: Int { links.withLock { Int($0.additions) } }
    var upstreamCount: Int { links.withLock { $0.upstreamCount } }
    var downstreamCount: Int { links.withLock { $0.downstreamCount } }
    var upstreamOperations: [Operation] { links.withLock { $0.upstreamOperations } }
    var liveUpstream: [ManagedOperation] { links.withLock { $0.liveUpstream } }
    var unendedUpstream: [Operation] { links.withLock { $0.unendedUpstream } }
    var liveDownstream: [DependencyNode] { links.withLock { $0.liveDownstream } }

    /// The operations that wait for it, as far as they can be found: those in a queue, and those that were started.
    var listeningDownstream: [ManagedOperation] {
        liveDownstream.compactMap { node in node.links.withLock { $0.listener.operation } }
    }

    var hasLiveDownstream: Bool { links.withLock { !$0.liveDownstream.isEmpty } }

    /// Adds an edge; false, and nothing happened, if it `mustBeFirst` and there is one to that operation.
    func add(_ edge: DependencyEdge, to operation: Operation, watcher: ForeignWatcher?, mustBeFirst: Bool) -> Bool {
        links.withLock { links in
            if mustBeFirst, links.dependsOn(operation) { return false }
            unended.wrappingAdd(1, ordering: .acquiringAndReleasing)
            links.add(edge, to: operation, watcher: watcher)
            return true
        }
    }

    func addDownstream(_ edge: DependencyEdge) { links.withLock { $0.addDownstream(edge) } }

    /// One of those waited for ended: tells the operation if it was the last and somebody listens.
    ///
    /// Called outside every lock.
    func noteEnd() {
        guard unended.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == 0 else { return }
        links.withLock { $0.listener.operation }?.dependenciesDidEnd()
    }

    /// Who is to be told of the last end from now on; returns whether that end came before.
    func listen(_ listener: DependencyListener) -> Bool {
        let old = links.withLock { exchange(&$0.listener, with: listener) }
        withExtendedLifetime(old) {}
        return isClear
    }

    /// Removes edges; returns the links, to be let go of outside every lock, and whether none is left to wait for.
    func remove(
        _ remove: (inout DependencyLinks) -> [DependencyLinks.Upstream]
    ) -> (removed: [DependencyLinks.Upstream], isClear: Bool) {
        let removed = links.withLock { remove(&$0) }
        let cut = removed.count { $0.edge.cut() }
        guard cut > 0 else { return (removed, false) }
        return (removed, unended.wrappingSubtract(cut, ordering: .acquiringAndReleasing).newValue == 0)
    }

    /// Some of those that waited for it do so no more.
    func forgetCutEdges(_ count: Int) {
        let forgotten = links.withLock { $0.noteCutDownstream(count) }
        withExtendedLifetime(forgotten) {}
    }

    func takeDownstream() -> FewOrMany<DependencyEdge> { links.withLock { $0.takeDownstream() } }

    /// Cuts all links of an operation that ended or is being freed.
    ///
    /// The upstream operations may be freed by this, and theirs by that: in a loop, not in a recursion.
    func tearDown() {
        var upstream = FewOrMany<DependencyLinks.Upstream>()
        let (listener, isSettled) = links.withLock { $0.takeUpstream(&upstream) }
        withExtendedLifetime(listener) {}
        if upstream.isEmpty { return }
        // An edge that is counted off has ended or was cut.
        if !isClear { upstream.forEach(cut) }
        // An operation is settled inside the worklist and not in a deinit: what is freed here and leads further leaves a
        // note there.
        if isSettled {
            // A `deinit` may take long, and what got ready shall not wait for it.
            let isAnyFreed = upstream.containsInPlace { isKnownUniquelyReferenced(&$0.operation) }
            if isAnyFreed { WorkerSeat.tellReadied() }
            upstream = FewOrMany()
        } else if ThreadWorklist.begin() {
            upstream = FewOrMany()
            ThreadWorklist.finish()
        } else {
            let rest = exchange(&upstream, with: FewOrMany())
            ThreadWorklist.later { withExtendedLifetime(rest) {} }
        }
    }

    private func cut(_ link: DependencyLinks.Upstream) {
        guard link.edge.cut() else { return }
        withExtendedLifetime(link.edge.takeJudge()) {}
        (link.operation as? ManagedOperation)?.forgetCutEdges(1)
    }
}

/// Who is told that an operation's dependencies ended.
enum DependencyListener {
    /// Nobody: who wants to know will ask.
    case nobody
    /// The operation, which its queue keeps until it ended.
    case held(ManagedOperation)
    /// The operation, if it is still there.
    case loose(WeakOperation)

    var operation: ManagedOperation? {
        switch self {
        case .nobody: nil
        case .held(let operation): operation
        case .loose(let reference): reference.operation
        }
    }
}

/// A weak reference, on its own so that operations that need none pay for none.
final class WeakOperation: Sendable {
    // Sendable: written once, in init; loading a weak reference is atomic.
    private nonisolated(unsafe) weak var reference: ManagedOperation?

    var operation: ManagedOperation? { reference }

    init(_ operation: ManagedOperation) { reference = operation }
}
