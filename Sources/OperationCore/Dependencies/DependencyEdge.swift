// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import Synchronization

/// One operation that waits for another: held by both, keeping neither alive.
///
/// The strong link from the waiting operation to the one it waits for stands beside the edge in its ``DependencyLinks``.
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
    // Sendable: written once, in init; loading a weak reference is atomic.
    private nonisolated(unsafe) weak var downstreamReference: ManagedOperation?
    /// Which input of the downstream operation is fed by this edge; 0 if none is.
    // Sendable: only touched under the lock of the downstream operation.
    nonisolated(unsafe) var inputNumber: UInt32 = 0
    /// Let go of when the edge has done its part: it holds what the user's rule captured.
    private let judge: Locked<Judge?>

    /// An edge with a `judge` may end the downstream operation; one without lets it run anyway.
    init(to downstream: ManagedOperation, judge: Judge?) {
        downstreamReference = downstream
        self.judge = Locked(judge)
    }

    var downstream: ManagedOperation? { downstreamReference }

    var isLive: Bool { phase.load(ordering: .acquiring) == .live }
    var isCut: Bool { phase.load(ordering: .acquiring) == .cut }

    /// Tells the downstream operation that the upstream one ended.
    ///
    /// Called outside every lock.
    func upstreamDidEnd(_ upstream: Operation) {
        // The downstream operation may be cutting this edge at the same moment. Who moves it away from `live` is the
        // one who takes it off the count.
        guard claim(.ended) else { return }
        let judge = takeJudge()
        guard let downstream else { return }
        switch judge?(upstream) ?? .proceed {
        case .proceed: break
        case .cancel(let cause): downstream.cancelIfUndecided(because: cause)
        case .fail(let fail): fail(downstream)
        }
        downstream.dependencyDidEnd()
    }

    /// Takes the dependency back; false if the upstream operation had ended.
    func cut() -> Bool { claim(.cut) }

    /// What the rule captured, to be let go of where no lock is held.
    func takeJudge() -> Judge? { judge.withLock { exchange(&$0, with: nil) } }

    private func claim(_ new: Phase) -> Bool {
        phase.compareExchange(expected: .live, desired: new, ordering: .acquiringAndReleasing).exchanged
    }
}
