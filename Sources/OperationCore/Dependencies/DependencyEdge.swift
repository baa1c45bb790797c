// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import Synchronization

/// One operation that waits for another: held by both, keeping neither alive.
///
/// The strong link from the waiting operation to the one it waits for stands beside the edge in its ``DependencyLinks``.
/// The edge itself leads to the node of the waiting operation, which can be told without that operation; a weak
/// reference to it, which costs much in making and makes each later use of the operation slower, only an edge with a
/// rule has.
final class DependencyEdge: Sendable {
    private enum Phase: UInt8, AtomicRepresentable {
        /// The upstream operation has not ended.
        case live
        /// The upstream operation ended, and the downstream one was told.
        case ended
        /// The dependency was taken back.
        case cut
    }

    /// What the end of the upstream operation means for the downstream one.
    enum Verdict: Sendable {
        case proceed
        case cancel(CancellationCause)
        case fail(@Sendable (ManagedOperation) -> Void)
    }

    typealias Judge = @Sendable (_ upstream: Operation) -> Verdict

    private let phase = Atomic<Phase>(.live)
    /// The node of the operation that waits.
    let downstreamNode: DependencyNode
    // Sendable: written once, in init; loading a weak reference is atomic.
    private nonisolated(unsafe) weak var judged: ManagedOperation?
    /// Let go of when the edge has done its part: it holds what the user's rule captured.
    private let judge: Locked<Judge?>
    let hasJudge: Bool
    // Sendable: only touched under the lock of the downstream operation.
    nonisolated(unsafe) var inputNumber: UInt32 = 0

    /// An edge with a `judge` may end the downstream operation; one without lets it run anyway.
    init(to downstream: ManagedOperation, node: DependencyNode, judge: Judge?) {
        downstreamNode = node
        hasJudge = judge != nil
        if judge != nil { judged = downstream }
        self.judge = Locked(judge)
    }

    var isLive: Bool { phase.load(ordering: .acquiring) == .live }
    var isCut: Bool { phase.load(ordering: .acquiring) == .cut }

    /// Tells the downstream operation that the upstream one ended.
    ///
    /// Called outside every lock.
    func upstreamDidEnd(_ upstream: Operation) {
        // The downstream operation may be cutting this edge at the same moment. Who moves it away from `live` is the
        // one who takes it off the count.
        guard claim(.ended) else { return }
        if hasJudge { apply(takeJudge(), to: upstream) }
        downstreamNode.noteEnd()
    }

    private func apply(_ judge: Judge?, to upstream: Operation) {
        guard let downstream = judged else { return }
        guard let upstream = upstream as? ManagedOperation else { return apply(judge?(upstream), to: downstream) }
        // Dependents whose rules come later wait until this rule has returned.
        BodyWait.within(upstream) { apply(judge?(upstream), to: downstream) }
    }

    private func apply(_ verdict: Verdict?, to downstream: ManagedOperation) {
        switch verdict ?? .proceed {
        case .proceed: break
        case .cancel(let cause): downstream.cancelIfUndecided(because: cause)
        case .fail(let fail): fail(downstream)
        }
    }

    /// Takes the dependency back; false if the upstream operation had ended.
    func cut() -> Bool { claim(.cut) }

    /// What the rule captured, to be let go of where no lock is held.
    func takeJudge() -> Judge? { hasJudge ? judge.withLock { exchange(&$0, with: nil) } : nil }

    private func claim(_ new: Phase) -> Bool {
        phase.compareExchange(expected: .live, desired: new, ordering: .acquiringAndReleasing).exchanged
    }
}
