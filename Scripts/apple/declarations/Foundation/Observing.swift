// Key-value observing with key paths.

// https://developer.apple.com/documentation/foundation/nskeyvalueobservation
public class NSKeyValueObservation: NSObject {
    public func invalidate() {}
}

// https://developer.apple.com/documentation/foundation/nskeyvalueobservedchange
public struct NSKeyValueObservedChange<Value> {
    public typealias Kind = NSKeyValueChange
    public let kind: Kind
    public let newValue: Value?
    public let oldValue: Value?
    public let indexes: IndexSet?
    public let isPrior: Bool
}

// https://developer.apple.com/documentation/swift/cocoa/using-key-value-observing-in-swift
public protocol _KeyValueCodingAndObserving {}
extension NSObject: _KeyValueCodingAndObserving {}
extension _KeyValueCodingAndObserving {
    @preconcurrency
    public func observe<Value>(
        _ keyPath: KeyPath<Self, Value>, options: NSKeyValueObservingOptions = [],
        changeHandler: @escaping @Sendable (Self, NSKeyValueObservedChange<Value>) -> Void
    ) -> NSKeyValueObservation { fatalError() }
    public func willChangeValue<Value>(for keyPath: __owned KeyPath<Self, Value>) {}
    public func didChangeValue<Value>(for keyPath: __owned KeyPath<Self, Value>) {}
}

// https://developer.apple.com/documentation/foundation/indexset
public struct IndexSet: Equatable, Hashable, Sendable {
    public init() {}
}
