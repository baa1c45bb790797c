// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    /// All tasks of a session that were resumed and have not ended; each knows where it stands.
    struct CurlRoster {
        private var tasks: [CurlTask] = []

        var isEmpty: Bool { tasks.isEmpty }
        var last: CurlTask? { tasks.last }

        /// Adds a task, unless it is there.
        mutating func add(_ task: CurlTask, now: Int64) {
            guard task.confined.extras.index < 0 else { return }
            task.confined.extras.index = tasks.count
            task.confined.resumedAt = now
            tasks.append(task)
        }

        /// Removes a task, if it is there.
        mutating func remove(_ task: CurlTask) {
            let index = task.confined.extras.index
            guard index >= 0 else { return }
            task.confined.extras.index = -1
            let last = tasks.removeLast()
            if last !== task {
                tasks[index] = last
                last.confined.extras.index = index
            }
        }
    }
#endif
