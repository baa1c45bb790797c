// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A counter of tracked objects that have not been deallocated, for tests that detect memory leaks.
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
        // Sendable: written once, in init. Loading a weak reference is atomic.
        nonisolated(unsafe) private(set) weak var object: AnyObject?
        let type: String

        init(_ object: AnyObject) {
            self.object = object
            type = "\(Swift.type(of: object))"
        }
    }

    private let entries = Locked<[Entry]>([])

    /// Creates a counter that tracks no objects yet.
    public init() {}

    /// Starts tracking an object, without keeping a strong reference to it, and returns the object.
    @discardableResult
    public func track<Object: AnyObject>(_ object: Object) -> Object {
        let entry = Entry(object)
        entries.withLock { $0.append(entry) }
        return object
    }

    /// The number of tracked objects that have not been deallocated.
    public var count: Int { alive.count }

    /// Waits until all tracked objects are deallocated or a limit is reached, and returns the number of remaining
    /// objects.
    ///
    /// Use this method if another thread might briefly keep a reference after the thread has reported the end of its
    /// work. The method blocks the current thread.
    ///
    /// - Parameter limit: The maximum time to wait. The default is 30 seconds.
    @available(*, noasync, message: "This method blocks the thread. Call it in synchronous code or on your own thread.")
    package func countAtRest(limit: Duration = .seconds(30)) -> Int {
        let start = ContinuousClock.now
        while count > 0, start.duration(to: .now) < limit { sched_yield() }
        return count
    }

    /// The type names of the tracked objects that have not been deallocated.
    package var types: [String] { alive.map(\.type) }

    private var alive: [Entry] {
        // The check is outside the lock, because it may release the last reference to an object.
        entries.withLock { $0 }.filter { $0.object != nil }
    }
}
