// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// Something that only so many operations may use at a time: a database, a folder, a device.
///
/// ```swift
/// let database = OperationCategory("database", limit: 1)
/// let photos = OperationCategory("photos", limit: 2)
/// let operation = ClosureOperation { 1 }
/// operation.categories = [database, photos]
/// operation.start()
/// ```
///
/// Operations share a category by sharing this object, in whatever queues they are, or in none. The name is for people:
/// two categories of one name are two.
///
/// An operation asks for all its categories in one step, when its dependencies have ended and its conditions, throttle
/// and delay allow it. It gets all of them or none. An operation in a ``QueueManager`` gets them together with its
/// slot. It holds none of them while it waits for a slot, and it gives up the slot if it does not get them. After more
/// than eight operations that came later were served first, it keeps its slot and waits, for up to 16 seconds each time.
/// It is served when it is the first of its queue in each of its lines and each category has room. So it does not hold
/// one category while it waits for another. The price is that an operation that waits for two
/// categories keeps its place in both lines, even if one of the two is free. It gives all of them back when it has
/// ended.
public final class OperationCategory: Sendable {
    /// What people call it.
    public let name: String
    /// How many operations may hold it at a time.
    public let limit: Int

    /// Makes a category; a limit below 1, with which nothing could ever run, counts as 1.
    public init(_ name: String, limit: Int = 1) {
        self.name = name
        self.limit = max(limit, 1)
    }

    /// The operations that hold it now, the one that got it first at the front.
    public var holders: [ManagedOperation] { CategoryRegistry.holders(of: self) }

    /// How many operations wait for it now.
    public var waitingCount: Int { CategoryRegistry.waitingCount(for: self) }

    /// The operations that wait for it, the next one at the front.
    package var waiters: [ManagedOperation] { CategoryRegistry.waiters(for: self) }
}

extension OperationCategory: CustomStringConvertible {
    /// The name and the limit.
    public var description: String { limit == 1 ? name : "\(name) (\(limit) at a time)" }
}

extension OperationCategory: Hashable {
    /// Categories are equal when they are the same object.
    public static func == (left: OperationCategory, right: OperationCategory) -> Bool { left === right }

    /// Hashes the identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
