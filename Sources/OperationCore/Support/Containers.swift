// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

/// A first-in, first-out list that appends and removes elements at constant cost.
@usableFromInline
package struct Fifo<Element> {
    @usableFromInline var elements: [Element?] = []
    @usableFromInline var head = 0

    @inlinable
    package init() {}

    @inlinable
    package var isEmpty: Bool { head == elements.count }
    @inlinable
    package var count: Int { elements.count - head }

    @inlinable
    package var first: Element? { head < elements.count ? elements[head] : nil }

    @inlinable
    package mutating func removeFirst() { _ = popFirst() }

    @inlinable
    package mutating func append(_ element: Element) {
        elements.append(element)
    }

    /// Removes the elements for which the closure returns `true`, and returns them in their order.
    @inlinable
    package mutating func removeAll(where isUnwanted: (Element) -> Bool) -> [Element] {
        var (kept, removed) = (Fifo(), [Element]())
        while let element = popFirst() {
            if isUnwanted(element) { removed.append(element) } else { kept.append(element) }
        }
        self = kept
        return removed
    }

    @inlinable
    package mutating func popFirst() -> Element? {
        guard head < elements.count else { return nil }
        // In most cases, this is the only element.
        if elements.count == 1 { return elements.removeLast() }
        let element = elements[head]
        elements[head] = nil
        head += 1
        if head == elements.count {
            elements.removeAll(keepingCapacity: head <= 64)
            head = 0
        } else if head > 64, head * 2 > elements.count {
            elements.removeFirst(head)
            head = 0
        }
        return element
    }
}

extension Fifo: Sendable where Element: Sendable {}

/// A list that stores a single element without an array, for lists that mostly have one element.
struct FewOrMany<Element> {
    // All elements move to the array together, so at most one of the two properties is in use.
    private var single: Element?
    private var many: [Element] = []

    var isEmpty: Bool { single == nil && many.isEmpty }
    var count: Int { single == nil ? many.count : 1 }

    @inline(__always)
    mutating func append(_ element: consuming Element) {
        if isEmpty { single = element } else { appendToMany(element) }
    }

    private mutating func appendToMany(_ element: consuming Element) {
        if let first = exchange(&single, with: nil) {
            // One allocation holds both elements and the two that often follow.
            many.reserveCapacity(4)
            many.append(first)
        }
        many.append(element)
    }

    subscript(position: Int) -> Element { single ?? many[position] }

    @inline(__always)
    func forEach(_ body: (Element) -> Void) {
        if let single { return body(single) }
        for element in many { body(element) }
    }

    /// Returns whether the closure returns `true` for an element, which it gets in place and not as a copy.
    mutating func containsInPlace(where isWanted: (inout Element) -> Bool) -> Bool {
        if var element = exchange(&single, with: nil) {
            defer { single = element }
            return isWanted(&element)
        }
        for index in many.indices where isWanted(&many[index]) { return true }
        return false
    }

    func map<Result>(_ convert: (Element) -> Result) -> [Result] {
        if let single { return [convert(single)] }
        return many.map(convert)
    }

    func compactMap<Result>(_ convert: (Element) -> Result?) -> [Result] { map(convert).compactMap { $0 } }

    func enumerated() -> EnumeratedSequence<[Element]> { map { $0 }.enumerated() }

    func firstIndex(where isWanted: (Element) -> Bool) -> Int? {
        if let single { return isWanted(single) ? 0 : nil }
        return many.firstIndex(where: isWanted)
    }

    mutating func swapAt(_ first: Int, _ second: Int) {
        if single == nil { many.swapAt(first, second) }
    }

    mutating func remove(at position: Int) {
        if single == nil { many.remove(at: position) } else { single = nil }
    }

    /// Removes the elements for which the closure returns `true`, and returns them.
    mutating func removeAll(where isUnwanted: (Element) -> Bool) -> [Element] {
        let removed = map { $0 }.filter(isUnwanted)
        guard !removed.isEmpty else { return [] }
        if single == nil { many.removeAll(where: isUnwanted) } else { single = nil }
        return removed
    }
}

/// A list of elements in the order in which they were added, under increasing numbers.
///
/// An element can be removed at a small cost. Regardless of how many elements are added and removed, the list stores at
/// most about twice as many entries as it ever held at the same time.
package struct ForgettingList<Element> {
    fileprivate struct Entry {
        let id: UInt64
        /// The element, or `nil` after it was removed.
        var element: Element?
    }

    /// The entries, of which the one at `head` and the last one always hold an element.
    private var entries: [Entry] = []
    /// The number of entries before the first one that holds an element.
    private var head: UInt32 = 0
    private var liveCount: UInt32 = 0

    package init() {}

    package var isEmpty: Bool { liveCount == 0 }
    package var count: Int { Int(liveCount) }

    /// The number of stored entries, including those whose element was removed.
    package var storedCount: Int { entries.count }

    /// The highest number, or zero if the list is empty.
    package var lastID: UInt64 { entries.last?.id ?? 0 }

    package var elements: [Element] { entries.compactMap(\.element) }

    /// Adds an element with a number that is greater than all earlier numbers.
    package mutating func append(_ element: Element, id: UInt64) {
        if entries.count == entries.capacity {
            entries.removeAll { $0.element == nil }
            head = 0
            // Reserves twice the space, so that the next search for removed entries is equally far away.
            if entries.count * 2 > entries.capacity { entries.reserveCapacity(max(entries.count * 2, 4)) }
        }
        entries.append(Entry(id: id, element: element))
        liveCount += 1
    }

    /// Removes an element and returns it, so that the caller can release it outside a lock.
    package mutating func remove(_ id: UInt64) -> Element? {
        position(of: id).flatMap { removeElement(at: $0) }
    }

    /// Removes and returns the first element for which the closure returns `true`.
    package mutating func removeFirst(where isWanted: (Element) -> Bool) -> Element? {
        entries.firstIndex { $0.element.map(isWanted) ?? false }.flatMap { removeElement(at: $0) }
    }

    /// Removes and returns the first element.
    package mutating func popFirst() -> Element? { isEmpty ? nil : removeElement(at: Int(head)) }

    /// Removes and returns the given number of elements at the start of the list, or all of them if there are fewer.
    package mutating func take(_ count: Int) -> [Element] {
        var taken: [Element] = []
        while taken.count < count, let element = popFirst() { taken.append(element) }
        return taken
    }

    /// Changes the element with a number, or returns `nil` if there is none.
    package mutating func update<Result>(_ id: UInt64, _ change: (inout Element) -> Result) -> Result? {
        guard let position = position(of: id), var element = exchange(&entries[position].element, with: nil) else {
            return nil
        }
        defer { entries[position].element = element }
        return change(&element)
    }

    /// Removes and returns all elements.
    package mutating func takeAll() -> [Element] {
        exchange(&self, with: ForgettingList()).elements
    }

    /// Removes and returns the elements for which the closure returns `true`.
    package mutating func takeAll(where isWanted: (Element) -> Bool) -> [Element] {
        var taken: [Element] = []
        for position in entries.indices {
            guard let element = entries[position].element, isWanted(element) else { continue }
            taken.append(element)
            entries[position].element = nil
        }
        trim(after: taken.count)
        return taken
    }

    private func position(of id: UInt64) -> Int? {
        // The numbers increase, so this is a binary search.
        var first = 0
        var end = entries.count
        while first < end {
            let middle = (first + end) / 2
            if entries[middle].id < id { first = middle + 1 } else { end = middle }
        }
        return first < entries.count && entries[first].id == id ? first : nil
    }

    private mutating func removeElement(at position: Int) -> Element? {
        guard let element = exchange(&entries[position].element, with: nil) else { return nil }
        trim(after: 1)
        return element
    }

    /// Removes the empty entries at the end, and finds the first element, after a number of elements was removed.
    private mutating func trim(after count: Int) {
        liveCount -= UInt32(count)
        while !entries.isEmpty, entries[entries.count - 1].element == nil { entries.removeLast() }
        while head < entries.count, entries[Int(head)].element == nil { head += 1 }
        if entries.isEmpty { head = 0 }
    }
}

extension ForgettingList: Sendable where Element: Sendable {}
extension ForgettingList.Entry: Sendable where Element: Sendable {}

/// A weak reference in its own object, so that other threads can read it, and objects that need none do not pay for it.
package final class WeakReference<Object: AnyObject & Sendable>: Sendable {
    // Sendable: written once, in init; loading a weak reference is atomic.
    private nonisolated(unsafe) weak var reference: Object?
    /// The identity of the object, which another object may have after the object was freed.
    let id: ObjectIdentifier

    package var object: Object? { reference }

    package init(_ object: Object) {
        reference = object
        id = ObjectIdentifier(object)
    }
}

/// An immutable value in an object of its own.
@usableFromInline
package final class Box<Value>: @unchecked Sendable {
    // Sendable: the value never changes, and its users pass only values that may be shared.
    @usableFromInline package let value: Value

    @inlinable @inline(__always)
    package init(_ value: Value) {
        self.value = value
    }
}

/// An optional value that occupies memory in its owner only for a reference.
///
/// Each assignment of a value creates an object, so this wrapper is for values that change rarely.
@propertyWrapper @usableFromInline
package struct Boxed<Value: Sendable>: Sendable {
    @usableFromInline var box: Box<Value>?

    @inlinable @inline(__always)
    package init(wrappedValue: Value?) {
        if let wrappedValue { box = Box(wrappedValue) } else { box = nil }
    }

    @inlinable package var wrappedValue: Value? {
        @inline(__always) get { if let box { box.value } else { nil } }
        @inline(__always) set { self = Boxed(wrappedValue: newValue) }
    }

    /// The wrapper itself, whose copies share the object.
    @inlinable package var projectedValue: Boxed {
        @inline(__always) get { self }
        @inline(__always) set { self = newValue }
    }
}

/// A wrapper that keeps a large value in an object.
///
/// Copies of the wrapper share the object until one copy changes the value, so a copy retains only one object.
@propertyWrapper @usableFromInline
package struct CopyOnWrite<Value: Sendable>: Sendable {
    @usableFromInline final class Storage: @unchecked Sendable {
        // Sendable: the value changes only while a single copy of the wrapper refers to this object.
        @exclusivity(unchecked) @usableFromInline var value: Value

        @inlinable
        init(_ value: Value) {
            self.value = value
        }
    }

    @usableFromInline var storage: Storage

    @inlinable
    package init(wrappedValue: Value) {
        storage = Storage(wrappedValue)
    }

    @inlinable package var wrappedValue: Value {
        _read { yield storage.value }
        _modify {
            if !isKnownUniquelyReferenced(&storage) { storage = Storage(storage.value) }
            yield &storage.value
        }
    }
}

/// A flag that any thread can set once and that never becomes unset.
package final class OneWayFlag: Sendable {
    private let state = Locked(false)

    package init() {}

    package var isSet: Bool { state.withLock { $0 } }

    package func set() { state.withLock { $0 = true } }
}
