// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Synchronization

/// A part of the graph whose operations are connected with each other, in any direction, and with no other operations.
///
/// Edges within a component are added under its lock, one at a time. An edge between two components joins them, under
/// the locks of both. So two threads cannot each add half of a cycle, and graphs that are not connected share no lock.
/// Ends, starts, cancellations and the removal of edges take none of these locks, and a component is never split.
///
/// The components form a forest. A component that was joined to another one points to it, and stores by how much its
/// ranks are shifted there. The smaller component is joined to the larger one, so the path to the root is short, and no
/// node has to be visited.
final class DependencyComponent: Sendable {
    private let lock = Locked(())
    /// The component to which this one was joined.
    ///
    /// It is set once, under the locks of both, and released with this component. Every edge reads it several times. The
    /// library's `AtomicLazyReference` is not used because each of its reads took 600 instructions, more than half of the cost
    /// of an edge.
    private let parent = Atomic<Unmanaged<DependencyComponent>?>(nil)
    // Sendable: written once, before `parent` is set, and read after `parent` was loaded.
    private nonisolated(unsafe) var shift = DependencyRank.zero
    // Sendable: only touched under `lock`.
    private nonisolated(unsafe) var weight = 1
    // Sendable: only touched under `lock`.
    /// The number of nodes and links that searches looked at; for tests.
    nonisolated(unsafe) var visits = 0

    deinit { parent.load(ordering: .acquiring)?.release() }

    /// The component to which its operations belong now.
    @inline(__always)
    var root: DependencyComponent { isRoot ? self : distantRoot }

    private var distantRoot: DependencyComponent {
        // Each component on the way is kept by the one before, and the first one by this.
        defer { extendLifetime(self) }
        var component = Unmanaged.passUnretained(self)
        while let next = component._withUnsafeGuaranteedRef({ $0.next }) { component = next }
        return component.takeUnretainedValue()
    }

    /// The number to add to a rank in this component to get the rank in the root.
    @inline(__always)
    var shiftToRoot: DependencyRank { isRoot ? 0 : distantShift }

    private var distantShift: DependencyRank {
        defer { extendLifetime(self) }
        var component = Unmanaged.passUnretained(self)
        var sum = DependencyRank.zero
        while let next = component._withUnsafeGuaranteedRef({ $0.next }) {
            sum &+= component._withUnsafeGuaranteedRef { $0.shift }
            component = next
        }
        return sum
    }

    @inline(__always)
    private var next: Unmanaged<DependencyComponent>? { parent.load(ordering: .acquiring) }

    @inline(__always)
    private var isRoot: Bool { next == nil }

    /// Runs `body` under the lock of the component to which two nodes belong, or under those of both components.
    ///
    /// Two locks are taken in the order of their addresses.
    static func withRoots<Result>(
        of one: DependencyComponent, _ other: DependencyComponent, _ body: () -> Result
    ) -> Result {
        while true {
            var (first, second) = (one.root, other.root)
            if UInt(bitPattern: ObjectIdentifier(second)) < UInt(bitPattern: ObjectIdentifier(first)) {
                swap(&first, &second)
            }
            // If a component was joined to another one meanwhile, the loop starts over. Each join leaves one root
            // fewer, so this happens rarely.
            let result = first.lock.withLock { _ -> Result? in
                guard first.isRoot else { return nil }
                if first === second { return body() }
                return second.lock.withLock { _ in second.isRoot ? body() : nil }
            }
            if let result { return result }
        }
    }

    /// Joins two components into one, in which the ranks of the second one are shifted by the given number.
    ///
    /// Called for two roots, under the locks of both.
    static func join(_ first: DependencyComponent, _ second: DependencyComponent, shifting shift: DependencyRank) {
        let isSecondLarger = second.weight > first.weight
        let (root, joined) = isSecondLarger ? (second, first) : (first, second)
        root.weight += joined.weight
        root.visits += joined.visits
        joined.shift = isSecondLarger ? 0 &- shift : shift
        joined.parent.store(Unmanaged.passRetained(root), ordering: .releasing)
    }

    /// Notes that a node got its place in the component.
    ///
    /// Called for a root, under its lock.
    func noteNode() { weight += 1 }
}
