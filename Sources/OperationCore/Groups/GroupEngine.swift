// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The shell of ``GroupMachine``: one object for each group, which holds its children.
///
/// It applies an event under its lock, takes out what follows (`Plan`), and does that when the lock was given back.
package final class GroupEngine: Sendable {
    struct Child {
        var operation: ManagedOperation?
        var waiter = GroupWaiter.none
        /// Whether the task that waited for it was cancelled.
        var isGivenUp = false
    }

    struct State {
        var machine: GroupMachine
        /// What reads the elements of the source, until no further element is needed.
        var reader: (any SourceReader)?
        var children: [Child] = []
        /// The group, from its start to its end.
        var operation: ManagedOperation?
        /// The group around it.
        var outer: GroupEngine?
        /// The queue on which its children run: before the start the one that was given to the group, then the one in
        /// use.
        ///
        /// The group releases the queue when it has concluded. A queue keeps the operations that failed in it, so a
        /// failed group that kept its queue, too, would keep it forever.
        var queue: QueueEngine?
        /// Whether what that queue accepted includes the group, and with it its children.
        var isPartOfQueue = false
        var waits = GroupWaits()
        var failures: [GroupFailure.Child] = []
        /// The error of the sequence of elements.
        var sourceError: (any Error)?
        /// The children whose results make that of the group, if not all do.
        var winners: [ManagedOperation] = []
        var place: GroupPlace?
        /// What it says to all that is beneath it.
        var offers = GroupOffers()
        /// Why children are cancelled, once they are.
        var doomCause: CancellationCause?
        var bodyTask: Task<Void, Never>?
        var bodyThread: pthread_t?
        /// Why the group was cancelled.
        var ownCause: CancellationCause?
        /// Whether the group was cancelled, or `cancel` was called on it after its end: no handler of a child begins any more.
        var isSilent = false
        /// What the enqueued handlers of children ask, once there are some.
        var mark: CancellationMark?
        /// Waits of its body that are over, as soon as there is a place.
        var returns: [ObjectIdentifier: GroupReturn] = [:]
        var meter = GroupMeter()
        /// The callback queue of the group, which is that of its children, if one was set.
        var callbackQueue: DispatchQueue?
        /// What calls the listeners of its progress on the callback queue, if there are some.
        var teller: GroupProgressTeller?
        /// The same on the main actor.
        var mainActorTeller: GroupProgressTeller?
        /// What it has to recover its children with, if it has.
        var recoveries: GroupRecoveries?
        /// Gives the group what its body returned.
        var finish: (@Sendable () -> Void)?
    }

    let state: Locked<State>
    let source: (any GroupSource)?

    package init(_ machine: GroupMachine, queue: QueueManager? = nil) {
        state = Locked(State(machine: machine, queue: queue?.engine))
        source = nil
    }

    init(_ machine: GroupMachine, queue: QueueManager?, source: any GroupSource, reader: (any SourceReader)?) {
        var first = State(machine: machine, reader: reader, queue: queue?.engine)
        first.meter.isOpen = true
        state = Locked(first)
        self.source = source
    }

    /// The queue of groups that no queue of this package holds and that were given none.
    ///
    /// It remembers no failures: nobody could ask it for them.
    static let sharedQueue: QueueManager = {
        let queue = QueueManager("groups")
        queue.failureLimit = 0
        return queue
    }()
}

extension GroupEngine {
    /// Whether a task reads the elements of its source.
    var hasReader: Bool { state.withLock { $0.reader != nil } }

    /// The name of the group, as far as it is known: from its start on.
    var displayName: String { state.withLock { $0.operation }?.displayName ?? "a group" }
}

extension GroupEngine.State {
    /// What calls the listeners of its progress.
    var tellers: [GroupProgressTeller] { [teller, mainActorTeller].compactMap { $0 } }

    mutating func takeTellers() -> [GroupProgressTeller] {
        if teller == nil, mainActorTeller == nil { return [] }
        defer { (teller, mainActorTeller) = (nil, nil) }
        return tellers
    }

    mutating func silence() {
        if !isSilent { mark?.set() }
        isSilent = true
    }
}

// The life of the group.
extension GroupEngine {
    /// The group was started.
    ///
    /// - Returns: Whether its body is to run.
    @discardableResult
    func begin(_ operation: ManagedOperation, isOnItsThread: Bool = false) -> Bool {
        let (host, outer) = (operation.placeHost, operation.core.withLock { $0.parent })
        let around = outer.map { outer in outer.state.withLock { ($0.queue, $0.isPartOfQueue) } }
        let queue = state.withLock { $0.queue } ?? host ?? around?.0 ?? Self.sharedQueue.engine
        var isLate = false
        var hasChildren = false
        var reader: (any SourceReader)?
        state.withLock { state in
            isLate = state.machine.isOver
            if isLate { return }
            reader = state.reader
            state.queue = queue
            state.isPartOfQueue = queue === host || queue === around?.0 && around?.1 == true
            state.operation = operation
            if isOnItsThread { state.bodyThread = pthread_self() }
            hasChildren = state.machine.present > 0 || source != nil
        }
        // Cancelled on the way here, all of it has ended.
        if isLate {
            endCancelled(operation)
            return false
        }
        // Without a body it needs no place of its own any more.
        if hasChildren, !state.withLock({ $0.machine.hasBody }) { operation.rest(1, because: .children) }
        var hasStarted = false
        apply { hasStarted = $0.machine.start() }
        // Only now, since a failure of the sequence counts only in a group that has started. This thread still has the
        // context of the operation.
        if hasStarted { reader?.begin(for: operation) { [weak self] news in self?.sourceDidTell(news) } }
        return hasStarted
    }

    /// The body returned; `finish` gives the group what it returned, when all children have ended.
    func bodyEnded(_ verdict: GroupMachine.Verdict, finish: (@Sendable () -> Void)? = nil) {
        apply { state in
            state.bodyThread = nil
            state.finish = finish
            state.machine.bodyEnded(verdict)
        }
    }

    /// The outcome of the group is decided: where that was a cancellation, or somebody else's doing, its children go with it.
    func outcomeWasDecided(_ operation: ManagedOperation) {
        let (isOver, hasBegun) = state.withLock { ($0.machine.isOver, $0.operation != nil) }
        if isOver { return }
        let cause = operation.cancellationCause
        if hasBegun {
            // In a loop and not in a recursion: each group beneath is cancelled after this one.
            ThreadWorklist.perform { self.cancel(because: cause) }
        } else {
            // What has not begun would end before its children if this were put off.
            keepPlace(operation.name)
            cancel(because: cause)
        }
    }

    private func cancel(because cause: CancellationCause?) {
        var bodyTask: Task<Void, Never>?
        apply { state in
            guard state.machine.cancel() else { return }
            state.ownCause = cause
            state.silence()
            bodyTask = state.bodyTask
        }
        // After its children, so that they have the cause that is theirs.
        bodyTask?.cancel()
    }

    /// Keeps the enqueued handlers of all children from beginning, however deep and whether or not they have ended.
    func silence() { state.withLock { $0.silence() } }

    /// What an enqueued handler of a child asks before it begins.
    ///
    /// It is nil if the child is shielded from all groups around it, and if the group has not begun.
    func cancellationMark(forChildAt slot: GroupMachine.Slot) -> CancellationMark? {
        // From here outwards until one has its mark, and back.
        var chain: [GroupEngine] = []
        var known: CancellationMark?
        var next: (engine: GroupEngine, slot: GroupMachine.Slot)? = (self, slot)
        while let (engine, slot) = next {
            next = nil
            let (isShielded, mark, operation, isSilent) = engine.state.withLock { state in
                let isShielded = state.children.indices.contains(Int(slot)) && state.machine.isShielded(slot)
                return (isShielded, state.mark, state.operation, state.isSilent)
            }
            if isShielded { break }
            known = mark
            if known != nil { break }
            // A group that has not begun may still become the child of another one, which its mark would not know. It gets none,
            // unless it is canceled. None of its children has an outcome that was told, so at most a report is enqueued.
            if operation == nil, !isSilent { break }
            chain.append(engine)
            let around = operation?.core.withLock { ($0.parent, $0.parentSlot) }
            if let around, let outer = around.0 { next = (outer, around.1) }
        }
        for engine in chain.reversed() {
            known = engine.state.withLock { state in
                let mark = state.mark ?? CancellationMark(isSet: state.isSilent, in: known)
                state.mark = mark
                return mark
            }
        }
        return known
    }

    /// Keeps the task of the body, to cancel it with the group.
    func keep(_ task: Task<Void, Never>) {
        let isLate = state.withLock { state in
            guard state.machine.hasBody else { return false }
            state.bodyTask = task
            return state.machine.isDooming
        }
        if isLate { task.cancel() }
    }

    /// Takes everything out, for a group that is being freed and never ran.
    func tearDown() {
        var left = state.withLock { state in
            Optional(
                (
                    exchange(&state.children, with: []), exchange(&state.outer, with: nil),
                    exchange(&state.recoveries, with: nil), state.takeTellers()
                ))
        }
        if left?.0.isEmpty == true, left?.1 == nil, left?.2 == nil, left?.3.isEmpty == true { return }
        for child in left?.0 ?? [] { child.operation?.leaveGroup() }
        ThreadWorklist.letGo(exchange(&left, with: nil))
    }
}

// A group that is put on hold.
extension GroupEngine {
    /// Begins no child, and puts those on hold that can be; or lets all go on.
    func setSuspended(_ isSuspended: Bool) {
        var waiters: [GroupWaiter] = []
        var active: [ManagedOperation] = []
        apply { state in
            state.machine.setSuspended(isSuspended)
            if !isSuspended { waiters = state.waits.takeHeld() }
            active = state.activeChildren
        }
        if let reader = state.withLock({ $0.reader }) {
            // Another thread may change that meanwhile, so the latest state is applied.
            applyLatest({ state.withLock { $0.machine.isSuspended } }, reader.setSuspended)
        }
        // In a loop and not in a recursion: each group beneath follows after this one.
        let children = active
        ThreadWorklist.perform { self.suspendChildren(children) }
        for waiter in waiters { release(waiter, .ended) }
    }

    /// Brings children into line with the group, as it is now.
    func suspendChildren(_ children: [ManagedOperation]) {
        // Another thread may change that meanwhile, so the latest state is applied.
        applyLatest({ state.withLock { $0.machine.isSuspended && !$0.machine.isDooming } }) { isSuspended in
            suspend(children, isSuspended)
        }
    }

    private func suspend(_ children: [ManagedOperation], _ isSuspended: Bool) {
        for child in children {
            let host = child.core.withLock { core -> QueueEngine? in
                guard core.parent === self, core.isHeldByGroup != isSuspended else { return nil }
                core.isHeldByGroup = isSuspended
                return core.host
            }
            host?.reconsider(child)
            if isSuspended { child.suspendExecution() } else { child.resumeExecution() }
        }
    }
}

/// How the wait of a body for a child came out.
enum GroupWaitEnd: Sendable {
    case ended
    case refused(CancellationCause)
    /// The operation is somebody else's.
    ///
    /// At the end of a wait: and it has ended.
    case elsewhere
}

/// Who goes on when a child has ended.
enum GroupWaiter: Sendable {
    case none
    case task(UnsafeContinuation<GroupWaitEnd, Never>)
    case thread(BlockingWaiter)

    var isNone: Bool { if case .none = self { true } else { false } }
    var isTask: Bool { if case .task = self { true } else { false } }

    func goOn(_ end: GroupWaitEnd) {
        switch self {
        case .none: break
        case .task(let continuation): continuation.resume(returning: end)
        case .thread(let waiter): waiter.wake()
        }
    }
}

/// The waits of a body: while there is one, the group needs no place in its queue.
struct GroupWaits {
    /// How many tasks wait.
    private(set) var count = 0
    /// Which of its rests the group is in, or was in last; the first is that of a group without a body.
    private(set) var rest: UInt32 = 1
    /// The last rest that was taken; several tasks may begin to wait at once.
    private var taken: UInt32 = 1
    /// Waits that are over, and go on when the group is resumed.
    private var held: [GroupWaiter] = []
    /// Waits for operations that are no children.
    private var strangers: [UInt64: (waiter: GroupWaiter, isShielded: Bool)] = [:]
    /// Waits whose task was cancelled before they began.
    private var cancelledStrangers: Set<UInt64> = []
    private var lastStranger: UInt64 = 0

    /// A task waits.
    mutating func begin() {
        count += 1
        if count == 1 { rest += 1 }
    }

    /// The rest that is to begin now, by whoever asks first.
    mutating func takeNewRest() -> UInt32? {
        guard count > 0, taken != rest else { return nil }
        taken = rest
        return rest
    }

    /// A task waits no more; true if it was the last.
    mutating func end() -> Bool {
        count -= 1
        return count == 0
    }

    /// The next rest, where others wait though the group has just got a place.
    mutating func restAgain() -> UInt32? {
        guard count > 0 else { return nil }
        rest += 1
        taken = rest
        return rest
    }

    mutating func hold(_ waiter: GroupWaiter) { held.append(waiter) }

    mutating func takeHeld() -> [GroupWaiter] { exchange(&held, with: []) }

    var strangerCount: Int { strangers.count }

    /// The number of a wait that is about to begin.
    mutating func nextStranger() -> UInt64 {
        lastStranger += 1
        return lastStranger
    }

    /// False if the task that waits was cancelled before.
    mutating func beginStranger(_ id: UInt64, _ waiter: GroupWaiter, isShielded: Bool) -> Bool {
        if cancelledStrangers.remove(id) != nil { return false }
        strangers[id] = (waiter, isShielded)
        if waiter.isTask { begin() }
        return true
    }

    /// The task that waits, or is about to, was cancelled.
    mutating func cancelStranger(_ id: UInt64) -> GroupWaiter {
        let waiter = endStranger(id)
        if waiter.isNone { cancelledStrangers.insert(id) }
        return waiter
    }

    /// The wait is over, whoever ended it.
    mutating func forgetStranger(_ id: UInt64) { cancelledStrangers.remove(id) }

    mutating func endStranger(_ id: UInt64) -> GroupWaiter { strangers.removeValue(forKey: id)?.waiter ?? .none }

    /// All that can end without a child, and are not shielded: the group was cancelled.
    mutating func takeAll() -> [GroupWaiter] {
        if strangers.isEmpty { return [] }
        let over = strangers.filter { !$0.value.isShielded }
        for id in over.keys { strangers[id] = nil }
        return over.values.map(\.waiter)
    }
}
