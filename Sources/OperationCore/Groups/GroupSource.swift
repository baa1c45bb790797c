// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// What makes children of a group as there is room for them.
///
/// Called outside every lock; `next` never by two threads at once.
protocol GroupSource: Sendable {
    func next() -> GroupPull

    /// A child that it made has ended.
    func take(_ child: ManagedOperation, tag: Int32)

    /// Describes the element of which a child that has not been taken was made, in a few words.
    func describe(tag: Int32) -> String?

    /// The group is over: what it holds for the rest is not needed.
    func letGo()
}

/// What a source gives.
enum GroupPull {
    case child(ManagedOperation, tag: Int32)
    /// Nothing before a child has ended, or before the reader of the elements has news.
    case nothingNow
    case nothingMore
}

/// The elements of which a source makes children, one after the other.
///
/// It is the user's, so it is called outside every lock, and never by two threads at the same time.
protocol ElementFeed<Element>: SendableMetatype {
    associatedtype Element

    /// The next element; nil if there is none, or none yet.
    mutating func next() -> Element?

    /// Whether there will be no further element. It is asked after `next` gave none.
    var isOver: Bool { get }
}

/// The elements of a sequence.
struct SequenceFeed<Elements: Sequence & Sendable>: ElementFeed {
    private var rest: Elements.Iterator

    init(_ elements: Elements) { rest = elements.makeIterator() }

    var isOver: Bool { true }

    mutating func next() -> Elements.Element? { rest.next() }
}
