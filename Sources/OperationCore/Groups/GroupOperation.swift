// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Many operations as one: written top to bottom, cancelled as one, with one typed result.
///
/// Requests that need each other's answers end up as callbacks in callbacks, where nobody knows any more what still runs,
/// and where a cancellation or an error has to be passed on by hand at each level. A group is a body instead, which runs
/// **children** and uses their results:
///
/// ```swift
/// let user = ClosureOperation { "ada" }
///
/// let greeting = GroupOperation { group in
///     let name = try await group.run(user)
///     async let hello = group.run(ClosureOperation { "Hello, \(name)" })
///     async let bye = group.run(ClosureOperation { "Bye, \(name)" })
///     return try await [hello, bye]
/// }
/// let texts = try await greeting.run()
/// ```
///
/// Groups can be children of groups, to any depth. Where there is nothing to write top to bottom, a group can be declared:
/// see `all(_:width:on:)`, `map(_:width:on:_:)`, ``init(policy:width:on:)``.
///
/// ### How it ends
///
/// It ends once, when its body returned and each of its children has ended. Cancelling it cancels all that is beneath it;
/// its outcome is that cancellation then, with its cause, whatever the children made of theirs. Do not call `finish` on a
/// group: that decides its outcome without its children.
///
/// ### Where it runs
///
/// The children run on the queue that was given to the group, or else on the ``QueueManager`` that holds the group, or else
/// on one that all such groups share. While its body waits for children a group takes up no place in its queue: groups
/// within groups need no width.
///
/// A group that was started is kept alive until it ends.
public final class GroupOperation<ResultType: Sendable, ErrorType: Error>: AsyncOperation<ResultType, ErrorType>,
    @unchecked Sendable
{
    // Sendable: what changes is behind the lock of the engine and that of `work`.

    /// What the group does by itself.
    struct Work: Sendable {
        /// Begins the body.
        var begin: (@Sendable (GroupOperation) -> Void)?
        /// Makes the outcome, where there is no body.
        var conclude: (@Sendable (GroupOperation, GroupMachine.Verdict) -> Void)?
    }

    let engine: GroupEngine
    private let work: Locked<Work>
    private let isSynchronous: Bool

    init(_ engine: GroupEngine, _ work: Work, isSynchronous: Bool = false) {
        self.engine = engine
        self.work = Locked(work)
        self.isSynchronous = isSynchronous
        super.init()
    }

    deinit {
        engine.tearDown()
        // The closures may hold operations, and those others: freed in a loop, not in a recursion.
        var left: Work? = work.withLock { exchange(&$0, with: Work()) }
        if left?.begin != nil || left?.conclude != nil { ThreadWorklist.letGo(exchange(&left, with: nil)) }
    }

    /// Always true: a cancelled group ends when its children have ended.
    public override var windsDownAfterCancellation: Bool { true }

    /// Begins the body, or the children.
    public override func main() {
        let begin = work.withLock { exchange(&$0.begin, with: nil) }
        if let begin { begin(self) } else { engine.begin(self) }
    }

    package override var runsInPlace: Bool { isSynchronous }

    package override var groupEngine: GroupEngine? { engine }

    package override func releaseBody() {
        engine.outcomeWasDecided(self)
        let left = work.withLock { work in
            let begin = exchange(&work.begin, with: nil)
            return (begin, isCancelled ? exchange(&work.conclude, with: nil) : nil)
        }
        withExtendedLifetime(left) {}
    }

    package override func setBodySuspended(_ isSuspended: Bool) { engine.setSuspended(isSuspended) }

    package override func concludeGroup(_ verdict: GroupMachine.Verdict) {
        // Cancelled just now, it has let go of that, and has wound down.
        guard let conclude = work.withLock({ exchange(&$0.conclude, with: nil) }) else { return bodyDidReturn() }
        conclude(self, verdict)
    }
}

// Children that are added.
extension GroupOperation {
    /// Adds a child, which begins with the group, or now if that has begun.
    ///
    /// The group waits for its end. Children may be added until the group has ended, by its body, by other children, by
    /// anybody; one that is added after a cancellation is cancelled, too.
    ///
    /// - Parameters:
    ///   - child: What to run. It may depend on other children.
    ///   - isShielded: Whether it goes on when the group is cancelled or fails. A group that is cancelled before it
    ///     begins takes all its children with it.
    ///   - weight: What it counts in the group's progress.
    /// - Throws: If the group has ended, or if the operation is somebody else's; then nothing happened to it.
    public func add(_ child: ManagedOperation, isShielded: Bool = false, weight: Double = 1) throws(GroupError) {
        try engine.add([child], ChildTerms(isShielded: isShielded, weight: weight))
    }

    /// Adds children, in their order: all, or those before the first that cannot be added.
    ///
    /// - Throws: If the group has ended, or if one is somebody else's.
    public func add(_ children: [ManagedOperation], isShielded: Bool = false, weight: Double = 1) throws(GroupError) {
        try engine.add(children, ChildTerms(isShielded: isShielded, weight: weight))
    }
}

extension GroupEngine {
    func add(_ children: [ManagedOperation], _ terms: ChildTerms) throws(GroupError) {
        var refusal: GroupError?
        for child in children {
            refusal = adopt(child, terms)
            if refusal != nil { break }
        }
        apply { _ in }
        if let refusal { throw refusal }
    }

    /// The children that have not ended.
    var presentChildren: [ManagedOperation] { state.withLock { $0.children.compactMap(\.operation) } }
}
