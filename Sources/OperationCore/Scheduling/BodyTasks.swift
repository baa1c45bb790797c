// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// The operations whose bodies run in tasks.
enum BodyTasks {
    /// Several tables, so that bodies that begin on different threads seldom share a lock.
    private final class Table: Sendable {
        let operations = Locked<[Int: ManagedOperation]>([:])
    }

    private static let tables = (0..<16).map { _ in Table() }

    /// Notes that the calling task runs the body of an operation, and returns the number of the task.
    static func begin(_ operation: ManagedOperation) -> Int {
        let task = currentTask
        table(of: task).operations.withLock { $0[task] = operation }
        return task
    }

    /// Notes that the body in a task has returned.
    static func end(_ task: Int) {
        let operation = table(of: task).operations.withLock { $0.removeValue(forKey: task) }
        withExtendedLifetime(operation) {}
    }

    /// The operation whose body the calling task runs; nil if there is none.
    static var operation: ManagedOperation? {
        let task = currentTask
        return task == 0 ? nil : table(of: task).operations.withLock { $0[task] }
    }

    private static func table(of task: Int) -> Table { tables[task & 15] }

    /// A number that identifies the calling task among all tasks that exist; zero outside of tasks.
    private static var currentTask: Int { withUnsafeCurrentTask { $0?.hashValue ?? 0 } }
}
