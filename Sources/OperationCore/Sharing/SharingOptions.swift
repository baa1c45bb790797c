// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// How ``SharedOperations`` run and keep what is shared.
public struct SharingOptions: Sendable {
    /// How long after the end of a successful run its result is given to those who ask then: not at all by default.
    public var timeToLive: Duration = .zero
    /// The clock on which that is counted: the system's by default.
    public var clock: any OperationClock = .system
    /// Where the run runs: with the first asker by default.
    public var place: SharedRunPlace = .firstAsker

    var keepsResults: Bool { timeToLive > .zero }

    /// Makes options that keep nothing and run with the first asker; change what you want otherwise.
    public init() {}
}

/// Where the run of ``SharedOperations`` runs.
public struct SharedRunPlace: Sendable {
    enum Kind {
        case firstAsker
        case manager(QueueManager)
        case foundation(OperationQueue)
    }

    let kind: Kind

    /// The run is started on the thread, and so in the queue, in which the first asker is started.
    ///
    /// If it cannot begin then, it begins later outside the queue, and the asker gives up its slot of a
    /// ``QueueManager`` meanwhile.
    public static var firstAsker: Self { Self(kind: .firstAsker) }

    /// The run is added to this queue.
    ///
    /// It may be the queue of the askers, because they need no slots while they wait.
    public static func queue(_ queue: QueueManager) -> Self { Self(kind: .manager(queue)) }

    /// The run is added to this queue.
    ///
    /// It must not be the queue of the askers, because they keep their places in an `OperationQueue` while they wait.
    public static func queue(_ queue: OperationQueue) -> Self { Self(kind: .foundation(queue)) }
}
