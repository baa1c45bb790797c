// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What makes children of a group as there is room for them.
///
/// Called outside every lock; `next` never by two threads at once.
protocol GroupSource: Sendable {
    func next() -> GroupPull

    /// A child that it made has ended.
    func take(_ child: ManagedOperation, tag: Int32)

    /// The group is over: what it holds for the rest is not needed.
    func letGo()
}

/// What a source gives.
enum GroupPull {
    case child(ManagedOperation, tag: Int32)
    /// Nothing before a child has ended.
    case nothingNow
    case nothingMore
}
