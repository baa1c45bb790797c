// The part of CoreFoundation that is written in Swift.

@_exported import CoreFoundation

// https://developer.apple.com/documentation/corefoundation/cftype
// Swift adds this conformance to each class of CoreFoundation, so that its objects can be keys of dictionaries.
public protocol _CFObject: AnyObject, Hashable {}

extension _CFObject {
    public var hashValue: Int { fatalError() }
    public func hash(into hasher: inout Hasher) {}
    public static func == (left: Self, right: Self) -> Bool { fatalError() }
}
