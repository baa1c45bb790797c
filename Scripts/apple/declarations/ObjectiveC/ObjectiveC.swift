// The part of the module that Swift adds to the Objective-C runtime.

@_exported import ObjectiveC

// https://developer.apple.com/documentation/objectivec/objcbool
@frozen public struct ObjCBool: ExpressibleByBooleanLiteral, CustomStringConvertible, Sendable {
    #if (os(macOS) && arch(x86_64)) || ((os(iOS) || os(tvOS)) && arch(i386))
        var _value: Int8
        public init(_ value: Bool) { _value = value ? 1 : 0 }
        public var boolValue: Bool { _value != 0 }
    #else
        var _value: Bool
        public init(_ value: Bool) { _value = value }
        public var boolValue: Bool { _value }
    #endif
    public init(booleanLiteral value: Bool) { self.init(value) }
    public var description: String { boolValue.description }
}

public func _convertBoolToObjCBool(_ x: Bool) -> ObjCBool { ObjCBool(x) }
public func _convertObjCBoolToBool(_ x: ObjCBool) -> Bool { x.boolValue }

// https://developer.apple.com/documentation/objectivec/selector
@frozen public struct Selector: ExpressibleByStringLiteral, Hashable, CustomStringConvertible, @unchecked Sendable {
    var ptr: OpaquePointer
    public init(_ str: String) { fatalError() }
    public init(stringLiteral value: String) { self.init(value) }
    public var description: String { "" }
}

// https://developer.apple.com/documentation/foundation/nszone
@frozen public struct NSZone {
    var pointer: OpaquePointer
}

// https://developer.apple.com/documentation/objectivec/autoreleasepool(invoking:)
public func autoreleasepool<E, Result: ~Copyable>(invoking body: () throws(E) -> Result) throws(E) -> Result {
    try body()
}

// https://developer.apple.com/documentation/objectivec/nsobject-swift.class
extension NSObject: Equatable, Hashable {
    public static func == (lhs: NSObject, rhs: NSObject) -> Bool { lhs.isEqual(rhs) }
    public func hash(into hasher: inout Hasher) { hasher.combine(hash) }
    public var hashValue: Int { hash }
}
extension NSObject: CVarArg {
    public var _cVarArgEncoding: [Int] { [] }
}
