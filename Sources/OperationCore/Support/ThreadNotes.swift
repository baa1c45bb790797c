// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The state that the package keeps for the calling thread, which is freed when the thread ends.
///
/// Only that thread uses it, in steps that do not overlap. So no access to it is checked at run time.
final class ThreadNotes {
    /// The maximum number of threads of all queues of the process.
    static let mostQueueThreads = 512

    /// Whether the thread is processing `pending`.
    @exclusivity(unchecked) var isWorking = false
    /// The work that the thread still has to do.
    ///
    /// See ``ThreadWorklist``.
    @exclusivity(unchecked) var pending = Fifo<() -> Void>()
    /// The number of nested starts on the thread, of operations that a queue may hold or that have more than a body.
    @exclusivity(unchecked) var queuedBodies = 0
    /// The work of the thread for a queue of this package, if it works for one.
    @exclusivity(unchecked) var worker: ThreadWork?
    /// The operations whose bodies run on the thread, or which must wait for other code on it, from the outermost to
    /// the innermost.
    @exclusivity(unchecked) var bodies: [RunningBody] = []
    /// The groups whose synchronous bodies run a shielded part on the thread, from the outermost to the innermost.
    @exclusivity(unchecked) var shields: [ObjectIdentifier] = []
    /// Whether a queue may begin operations with a brief body on the thread.
    ///
    /// See ``BorrowedThread``.
    @exclusivity(unchecked) var isBorrowed = false
    /// The pool that owns the thread, if any.
    @exclusivity(unchecked) var threadOwner: (any ThreadOwner)?
    /// The number of nested children of groups that run on the thread.
    @exclusivity(unchecked) var childrenInPlace = 0
    /// The object whose end this thread performs, and the steps that follow the end.
    @exclusivity(unchecked) private var end: (of: AnyObject, after: [() -> Void])?
    /// The number of nested steps from one operation to the next, through its body or its end.
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
    /// The step runs on this thread if few such steps enclose it, and otherwise on a global queue. So a long chain of
    /// steps uses little of any stack. Unlike ``ThreadWorklist``, this method delays nothing, because a step may run a
    /// body of the user.
    static func atBoundedDepth(_ step: @escaping @Sendable () -> Void) {
        let notes = current
        guard notes.nestedSteps < deepestStep else { return DispatchQueue.global().async(execute: step) }
        notes.nestedSteps += 1
        step()
        notes.nestedSteps -= 1
    }

    /// Calls `end`, which ends an object, and then performs the steps that were added for after the end.
    static func performEnd(of object: AnyObject, _ end: () -> Void) {
        let notes = current
        let outer = exchange(&notes.end, with: (object, []))
        end()
        let steps = exchange(&notes.end, with: outer)?.after ?? []
        for step in steps { step() }
    }

    /// Adds a step to perform after the end of the object, and returns whether this thread is performing that end.
    ///
    /// If it is not, the step is not added.
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
    /// The operation, which is not retained because the caller of the body holds it.
    let operation: Unmanaged<Operation>
    /// Whether the body is a hook, which a canceled operation does not wait for.
    let isHook: Bool
}

/// The work of a thread for a queue, as seen by the code that the thread runs.
///
/// The queues implement it.
package class ThreadWork {
    /// Whether the thread no longer counts as one of the queue's threads.
    @exclusivity(unchecked) final var hasLeft = false

    /// Notes that a body of this thread has returned, so that no code of the user runs before the thread requests more
    /// work.
    func bodyDidReturn(of operation: Operation) {}

    /// Reports the unreported changes of this thread, before a rule or a conversion of the user runs.
    func reportChanges() {}

    /// Reports the operations that became ready, before an object is released that may be the user's.
    func reportReadied() {}

    /// Prepares for a wait of the thread for an operation, if the operation is known.
    ///
    /// - Returns: `false`, without any effect, if too many threads already wait.
    func willBlock(for operation: Operation?) -> Bool { true }

    /// Ends a wait for which `willBlock` returned `true`.
    func didBlock() {}
}

/// A pool that lends its threads, and replaces a thread that waits for an operation.
package protocol ThreadOwner: Sendable {
    /// Announces that one of the pool's threads is about to wait.
    ///
    /// - Returns: `false` if too many threads already wait, so that this one must not wait.
    func threadWillWait() -> Bool

    func threadDidWait()
}
