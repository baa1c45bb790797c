// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

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
