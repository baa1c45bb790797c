// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Counts the objects that are still alive: the test against leaks that no leak detector can make on a running program.
///
/// ```swift
/// let census = LiveObjects()
/// do {
///     let operation = census.track(ClosureOperation { 1 })
///     operation.start()
/// }
/// print(census.count)  // 0
/// ```
public final class LiveObjects: Sendable {
    private struct Entry: Sendable {
        // Sendable: written once, in init; loading a weak reference is atomic.
        nonisolated(unsafe) private(set) weak var object: AnyObject?
        let type: String

        init(_ object: AnyObject) {
            self.object = object
            type = "\(Swift.type(of: object))"
        }
    }

    private let entries = Locked<[Entry]>([])

    /// Makes an empty census.
    public init() {}

    /// Begins to watch an object, without keeping it alive.
    @discardableResult
    public func track<Object: AnyObject>(_ object: Object) -> Object {
        let entry = Entry(object)
        entries.withLock { $0.append(entry) }
        return object
    }

    /// How many of the watched objects are alive.
    public var count: Int { alive.count }

    /// How many of the watched objects stay alive when other threads had a chance to let go of them.
    ///
    /// A thread that has just told of the end of its work may still hold what it worked on for a moment. This gives way
    /// to other threads until none is alive, or for `limit` at most.
    @available(*, noasync, message: "This blocks the thread: call it inside TestThread.run.")
    public func countAtRest(limit: Duration = .seconds(30)) -> Int {
        let start = ContinuousClock.now
        while count > 0, start.duration(to: .now) < limit { sched_yield() }
        return count
    }

    /// The types of those that are alive.
    public var types: [String] { alive.map(\.type) }

    private var alive: [Entry] {
        // Outside the lock: an object found alive here may be let go of here, and freed.
        entries.withLock { $0 }.filter { $0.object != nil }
    }
}
