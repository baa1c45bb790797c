// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What the library has to remember about the calling thread; freed when the thread ends.
///
/// Only that thread touches it, in steps that do not overlap. So no access to it is checked at run time.
final class ThreadNotes {
    /// How many threads all queues of the process may have.
    static let mostQueueThreads = 512

    /// Whether the thread works through `pending`.
    @exclusivity(unchecked) var isWorking = false
    /// What it has still to do: see ``ThreadWorklist``.
    @exclusivity(unchecked) var pending = Fifo<() -> Void>()
    /// How many starts it is in, one inside the other: of operations which a queue may hold, or with more than a body.
    @exclusivity(unchecked) var queuedBodies = 0
    /// What the thread has in hand for a queue of this package, if it works for one.
    @exclusivity(unchecked) var seat: WorkerSeat?
    /// The operations whose bodies run on the thread, or which must wait for other code on it, from the outermost to
    /// the innermost.
    @exclusivity(unchecked) var bodies: [RunningBody] = []
    /// The groups whose synchronous bodies run a shielded part on the thread, from the outermost to the innermost.
    @exclusivity(unchecked) var shields: [ObjectIdentifier] = []
    /// Whether a queue may begin on it what takes but a moment: see ``LentThread``.
    @exclusivity(unchecked) var isLent = false
    /// The pool that lent the thread, if one did.
    @exclusivity(unchecked) var lender: (any ThreadLender)?
    /// How many children of groups it runs in place, one inside the other.
    @exclusivity(unchecked) var childrenInPlace = 0
    /// The object whose end this thread performs, and the steps that are left for after the end.
    @exclusivity(unchecked) private var end: (of: AnyObject, after: [() -> Void])?
    /// How many steps from one operation to the next, through its body or its end, it is in.
    @exclusivity(unchecked) private var nestedSteps = 0

    /// The notes of the calling thread.
    static var current: ThreadNotes {
        if let pointer = pthread_getspecific(key) {
            return Unmanaged<ThreadNotes>.fromOpaque(pointer).takeUnretainedValue()
        }
        let notes = ThreadNotes()
        pthread_setspecific(key, Unmanaged.passRetained(notes).toOpaque())
        return notes
    }

    /// Runs a step that leads from one operation to another, which may lead to a third, and so on.
    ///
    /// On this thread where few such steps enclose it, else on a global queue: so a long row of them takes little of any
    /// stack. Unlike ``ThreadWorklist`` it puts nothing off, since a step may run a body of the user's.
    static func atBoundedDepth(_ step: @escaping @Sendable () -> Void) {
        let notes = current
        guard notes.nestedSteps < deepestStep else { return DispatchQueue.global().async(execute: step) }
        notes.nestedSteps += 1
        step()
        notes.nestedSteps -= 1
    }

    /// Calls `end`, which ends an object, and then performs the steps that were left for after the end.
    static func performEnd(of object: AnyObject, _ end: () -> Void) {
        let notes = current
        let outer = exchange(&notes.end, with: (object, []))
        end()
        let steps = exchange(&notes.end, with: outer)?.after ?? []
        for step in steps { step() }
    }

    /// Leaves a step for after the end of the object; returns false if this thread is not performing that end.
    static func leave(untilEndOf object: AnyObject, _ step: @escaping () -> Void) -> Bool {
        let notes = current
        guard notes.end?.of === object else { return false }
        notes.end?.after.append(step)
        return true
    }

    private static let deepestStep = 16

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        #if canImport(Darwin)
            pthread_key_create(&key) { Unmanaged<AnyObject>.fromOpaque($0).release() }
        #else
            pthread_key_create(&key) { pointer in
                if let pointer { Unmanaged<AnyObject>.fromOpaque(pointer).release() }
            }
        #endif
        return key
    }()
}

/// A body that runs on a thread.
struct RunningBody {
    /// Not retained, because the caller of the body holds the operation.
    let operation: Unmanaged<ManagedOperation>
    /// Whether it is a hook, for which the operation does not wait when it is canceled.
    let isHook: Bool
}

/// A pool that lends its threads, and replaces a thread that waits for an operation.
package protocol ThreadLender: Sendable {
    /// One of its threads is about to wait; false, and it must not, if too many wait already.
    func threadWillWait() -> Bool

    func threadDidWait()
}

/// One task that waits for something to end, or for its own cancellation: who sees that ends the wait.
package final class TaskWait: Sendable {
    private enum State {
        case idle
        case waiting(CheckedContinuation<Void, Never>)
        case over
    }

    private let state = Locked(State.idle)

    package init() {}

    /// Lets the task go on, or pass if it has not come yet.
    package func end() {
        if case .waiting(let continuation) = state.withLock({ exchange(&$0, with: .over) }) { continuation.resume() }
    }

    /// Waits for `end()`.
    package func passage() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if case .over = state { return true }
                state = .waiting(continuation)
                return false
            }
            if isOver { continuation.resume() }
        }
    }
}
