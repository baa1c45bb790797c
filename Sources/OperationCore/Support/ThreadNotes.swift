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
    /// Whether a queue may begin operations on the thread now.
    ///
    /// In a body, the caller may hold a lock that the policies of the next operation need.
    var mayBegin: Bool { isBorrowed && bodies.isEmpty }
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

    /// Runs a closure of the user, in which no queue begins an operation on this thread.
    ///
    /// The closure may hold a lock that the policies of the next operation need.
    static func withoutBeginning<Result>(_ closure: () -> Result) -> Result {
        let notes = current
        let wasBorrowed = exchange(&notes.isBorrowed, with: false)
        defer { notes.isBorrowed = wasBorrowed }
        return closure()
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

/// A wait of one task, which ends with an event or with the cancellation of the task.
///
/// The code that sees either of them calls `end()`. Until then, the waiting task can perform short work, so that the
/// work needs no other thread.
package final class TaskWait: Sendable {
    private enum State {
        /// The task does not wait yet, or performs work.
        case idle
        case waiting(UnsafeContinuation<Work?, Never>)
        case over
    }

    private let state = Locked(State.idle)

    package init() {}

    /// Resumes the task, or lets a later `passage()` return after the work that the task has.
    package func end() {
        if case .waiting(let continuation) = state.withLock({ exchange(&$0, with: .over) }) {
            continuation.resume(returning: nil)
        }
    }

    /// Lets the waiting task perform work, and returns whether it will.
    ///
    /// The task does not if it is not waiting, for example because it performs other work.
    package func perform(_ work: @escaping @Sendable () -> Void) -> Bool {
        let continuation = state.withLock { state -> UnsafeContinuation<Work?, Never>? in
            guard case .waiting(let continuation) = state else { return nil }
            state = .idle
            return continuation
        }
        continuation?.resume(returning: Work(work))
        return continuation != nil
    }

    /// Waits for `end()`, and performs work in the meantime.
    package func passage() async {
        while let work = await next() { work.perform() }
    }

    /// Waits like `passage()`, and calls a closure when the task is canceled.
    package func passage(onCancel: @Sendable () -> Void) async {
        await withTaskCancellationHandler {
            await passage()
        } onCancel: {
            onCancel()
        }
    }

    private func next() async -> Work? {
        await withUnsafeContinuation { continuation in
            let isOver = state.withLock { state in
                if case .over = state { return true }
                state = .waiting(continuation)
                return false
            }
            if isOver { continuation.resume(returning: nil) }
        }
    }
}

/// A closure in a struct.
///
/// Generic code that takes or returns a bare closure creates another closure around it, which is an allocation.
package struct Work: Sendable {
    package let perform: @Sendable () -> Void

    package init(_ perform: @escaping @Sendable () -> Void) {
        self.perform = perform
    }
}

/// A list of work that turns recursion on one thread into a loop.
///
/// When an operation ends, OperationKit notifies its dependents, which may end and notify their own dependents. Freeing
/// the last operation of a chain frees the operation before it. As plain recursion, a chain of a hundred thousand
/// operations overflows the stack. With this list, an inner call only adds its work to the list, and the outermost call
/// performs all the work in the list.
package enum ThreadWorklist {
    /// Runs `work` now, or after the current work if the calling thread is already inside `perform`.
    package static func perform(_ work: @escaping () -> Void) {
        guard begin() else { return later(work) }
        work()
        finish()
    }

    // The same in steps, for work that needs no closure if it can be done immediately.

    /// Returns whether the calling thread may do such work now and then call `finish`, instead of passing the work to
    /// `later`.
    static func begin() -> Bool {
        let notes = ThreadNotes.current
        if notes.isWorking { return false }
        notes.isWorking = true
        return true
    }

    /// Leaves work for the outermost call.
    static func later(_ work: @escaping () -> Void) {
        ThreadNotes.current.pending.append(work)
    }

    /// Does the work that was left in the meantime.
    static func finish() {
        let notes = ThreadNotes.current
        while let work = notes.pending.popFirst() { work() }
        notes.isWorking = false
    }
}

extension ThreadWorklist {
    /// Releases a value in a loop if it may hold an operation that holds another operation, and so on.
    ///
    /// Call this method in a `deinit`, which would otherwise release the value by recursion. The argument must be the
    /// last reference to the value, so take the value out of its property with `release(exchange(&place, with: nil))`.
    package static func release<Value>(_ value: consuming Value) {
        var value: Value? = value
        perform { extendLifetime(exchange(&value, with: nil)) }
    }
}
