// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The reason why an executing operation waits and does not count toward the width of its queue.
public struct WaitReason: Sendable, Hashable, CustomStringConvertible {
    /// A kind of event for which an executing operation waits.
    ///
    /// Future versions may add kinds, so always handle unknown kinds. Waits that the scheduler controls, such as a wait
    /// for children, have kinds without a public name.
    public struct Kind: Sendable, Hashable, CustomStringConvertible {
        /// The name of the kind, which is suitable as a metric label.
        public let description: String

        private init(_ name: String) { description = name }

        /// The operation waits until a pause ends, for example before a retry.
        public static let pause = Kind("pause")
        /// The operation waits because a rate limit delays its next request.
        public static let rateLimit = Kind("rateLimit")
        /// The operation waits for a credential, for example while an authenticator refreshes it.
        public static let credential = Kind("credential")
        /// The operation waits for a network connection.
        public static let network = Kind("network")
        /// The operation is paused until your code lets it continue.
        public static let release = Kind("release")
        /// The operation is a group and waits for its children.
        package static let children = Kind("children")
        /// The body blocks its thread while it waits for another operation.
        package static let operation = Kind("operation")
        /// The operation waits for work that it shares with other operations.
        ///
        /// See ``SharedOperations``.
        package static let sharedRun = Kind("sharedRun")
        /// The operation waits for a slot in its queue before it resumes its work.
        package static let place = Kind("place")
    }

    /// The kind of event for which the operation waits.
    public let kind: Kind
    /// A description of the reason that can be part of a sentence, such as "waiting for the network".
    public let description: String

    package init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    package static let children = WaitReason(.children, "waiting for its children")

    package static let sharedRun = WaitReason(.sharedRun, "waiting for a shared run")

    package static let place = WaitReason(.place, "waiting for a slot in its queue to resume")
}

extension WaitReason {
    /// Returns the reason for a wait of a known duration.
    ///
    /// - Parameter text: The end of the description, such as " before attempt 2".
    package static func waiting(_ kind: Kind, _ time: Duration, _ text: String) -> WaitReason {
        let tenths = time.saturatedNanoseconds / 100_000_000
        return WaitReason(kind, "waiting \(tenths / 10).\(tenths % 10) s\(text)")
    }
}

// Operations that wait in the middle of their work, without a thread.
extension ManagedOperation {
    /// The reason why the executing operation waits, or `nil` if it does not wait.
    ///
    /// While the operation waits, it does not count toward the width of its ``QueueManager``, so other operations can
    /// run. When the operation can resume, it takes precedence over operations that have not begun.
    public final var waitReason: WaitReason? {
        core.withLock { $0.machine.ending == nil ? $0.extras?.wait : nil }
    }

    /// The queue in which the operation occupies a slot, which may be the slot of another operation.
    var slotQueue: HostQueue? {
        core.withLock { $0.host } ?? slotHolder?.slotQueue
    }

    final var slotHolder: ManagedOperation? { core.withLock { $0.extras?.slotHolder } }

    /// The operations that wait for the end of this one, such as its group, the holder of its slot, or those that share
    /// it.
    final var operationsAround: [ManagedOperation] {
        let (holder, sharers) = core.withLock { ($0.extras?.slotHolder, $0.extras?.sharers) }
        return [holder ?? groupOfChild].compactMap { $0 } + (sharers?() ?? [])
    }
}

extension ManagedOperation.Core {
    /// Whether the operation has not ended, because an operation that winds down may also wait.
    private var isAtWork: Bool { machine.ending == nil || machine.isExecuting }

    /// Returns `false` if the wait or the operation has already ended.
    @discardableResult
    mutating func beginWait(_ number: UInt32, _ reason: WaitReason) -> Bool {
        guard isAtWork, machine.isStarted, number > extras?.lastWait ?? 0 else { return false }
        need().wait = reason
        return true
    }

    /// Ends a wait, even if the call that begins it is still to come.
    mutating func endWait(_ number: UInt32) {
        guard isAtWork else { return }
        let extras = need()
        extras.lastWait = max(extras.lastWait, number)
        extras.wait = nil
    }

    /// Begins to wait for a slot after another wait has ended.
    mutating func waitForSlot() {
        if machine.ending == nil { need().wait = .place }
    }
}
