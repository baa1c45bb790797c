// Bridging of Swift value types to objects: the conformances that the compiler requires for `as` and for imported methods.

// https://developer.apple.com/documentation/foundation/referenceconvertible
public protocol ReferenceConvertible: _ObjectiveCBridgeable, CustomStringConvertible, CustomDebugStringConvertible, Hashable {
    associatedtype ReferenceType: NSObject, NSCopying
}

// https://developer.apple.com/documentation/swift/string
extension String: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSString { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSString, result: inout String?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSString, result: inout String?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSString?) -> String { fatalError() }
}

// https://developer.apple.com/documentation/swift/bool
extension Bool: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSNumber { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSNumber, result: inout Bool?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSNumber, result: inout Bool?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSNumber?) -> Bool { fatalError() }
}

// https://developer.apple.com/documentation/swift/int
extension Int: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSNumber { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSNumber, result: inout Int?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSNumber, result: inout Int?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSNumber?) -> Int { fatalError() }
}

// https://developer.apple.com/documentation/swift/uint
extension UInt: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSNumber { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSNumber, result: inout UInt?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSNumber, result: inout UInt?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSNumber?) -> UInt { fatalError() }
}

// https://developer.apple.com/documentation/swift/int8
extension Int8: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSNumber { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSNumber, result: inout Int8?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSNumber, result: inout Int8?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSNumber?) -> Int8 { fatalError() }
}

// https://developer.apple.com/documentation/swift/uint8
extension UInt8: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSNumber { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSNumber, result: inout UInt8?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSNumber, result: inout UInt8?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSNumber?) -> UInt8 { fatalError() }
}

// https://developer.apple.com/documentation/swift/int16
extension Int16: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSNumber { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSNumber, result: inout Int16?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSNumber, result: inout Int16?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSNumber?) -> Int16 { fatalError() }
}

// https://developer.apple.com/documentation/swift/uint16
extension UInt16: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSNumber { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSNumber, result: inout UInt16?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSNumber, result: inout UInt16?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSNumber?) -> UInt16 { fatalError() }
}

// https://developer.apple.com/documentation/swift/int32
extension Int32: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSNumber { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSNumber, result: inout Int32?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSNumber, result: inout Int32?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSNumber?) -> Int32 { fatalError() }
}

// https://developer.apple.com/documentation/swift/uint32
extension UInt32: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSNumber { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSNumber, result: inout UInt32?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSNumber, result: inout UInt32?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSNumber?) -> UInt32 { fatalError() }
}

// https://developer.apple.com/documentation/swift/int64
extension Int64: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSNumber { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSNumber, result: inout Int64?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSNumber, result: inout Int64?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSNumber?) -> Int64 { fatalError() }
}

// https://developer.apple.com/documentation/swift/uint64
extension UInt64: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSNumber { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSNumber, result: inout UInt64?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSNumber, result: inout UInt64?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSNumber?) -> UInt64 { fatalError() }
}

// https://developer.apple.com/documentation/swift/double
extension Double: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSNumber { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSNumber, result: inout Double?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSNumber, result: inout Double?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSNumber?) -> Double { fatalError() }
}

// https://developer.apple.com/documentation/swift/float
extension Float: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSNumber { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSNumber, result: inout Float?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSNumber, result: inout Float?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSNumber?) -> Float { fatalError() }
}

// https://developer.apple.com/documentation/foundation/data
extension Data: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSData { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSData, result: inout Data?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSData, result: inout Data?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSData?) -> Data { fatalError() }
}

// https://developer.apple.com/documentation/foundation/date
extension Date: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSDate { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSDate, result: inout Date?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSDate, result: inout Date?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSDate?) -> Date { fatalError() }
}

// https://developer.apple.com/documentation/foundation/dateinterval
extension DateInterval: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSDateInterval { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSDateInterval, result: inout DateInterval?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSDateInterval, result: inout DateInterval?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSDateInterval?) -> DateInterval { fatalError() }
}

// https://developer.apple.com/documentation/foundation/url
extension URL: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSURL { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSURL, result: inout URL?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSURL, result: inout URL?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSURL?) -> URL { fatalError() }
}

// https://developer.apple.com/documentation/foundation/urlcomponents
extension URLComponents: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSURLComponents { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSURLComponents, result: inout URLComponents?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSURLComponents, result: inout URLComponents?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSURLComponents?) -> URLComponents { fatalError() }
}

// https://developer.apple.com/documentation/foundation/urlqueryitem
extension URLQueryItem: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSURLQueryItem { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSURLQueryItem, result: inout URLQueryItem?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSURLQueryItem, result: inout URLQueryItem?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSURLQueryItem?) -> URLQueryItem { fatalError() }
}

// https://developer.apple.com/documentation/foundation/uuid
extension UUID: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSUUID { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSUUID, result: inout UUID?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSUUID, result: inout UUID?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSUUID?) -> UUID { fatalError() }
}

// https://developer.apple.com/documentation/foundation/locale
extension Locale: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSLocale { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSLocale, result: inout Locale?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSLocale, result: inout Locale?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSLocale?) -> Locale { fatalError() }
}

// https://developer.apple.com/documentation/foundation/timezone
extension TimeZone: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSTimeZone { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSTimeZone, result: inout TimeZone?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSTimeZone, result: inout TimeZone?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSTimeZone?) -> TimeZone { fatalError() }
}

// https://developer.apple.com/documentation/foundation/calendar
extension Calendar: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSCalendar { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSCalendar, result: inout Calendar?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSCalendar, result: inout Calendar?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSCalendar?) -> Calendar { fatalError() }
}

// https://developer.apple.com/documentation/foundation/datecomponents
extension DateComponents: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSDateComponents { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSDateComponents, result: inout DateComponents?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSDateComponents, result: inout DateComponents?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSDateComponents?) -> DateComponents { fatalError() }
}

// https://developer.apple.com/documentation/foundation/characterset
extension CharacterSet: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSCharacterSet { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSCharacterSet, result: inout CharacterSet?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSCharacterSet, result: inout CharacterSet?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSCharacterSet?) -> CharacterSet { fatalError() }
}

// https://developer.apple.com/documentation/foundation/urlrequest
extension URLRequest: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSURLRequest { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSURLRequest, result: inout URLRequest?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSURLRequest, result: inout URLRequest?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSURLRequest?) -> URLRequest { fatalError() }
}

// https://developer.apple.com/documentation/swift/array
extension Array: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSArray { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSArray, result: inout [Element]?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSArray, result: inout [Element]?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSArray?) -> [Element] { fatalError() }
}

// https://developer.apple.com/documentation/swift/dictionary
extension Dictionary: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSDictionary { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSDictionary, result: inout [Key: Value]?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSDictionary, result: inout [Key: Value]?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSDictionary?) -> [Key: Value] { fatalError() }
}

// https://developer.apple.com/documentation/swift/set
extension Set: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSSet { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ x: NSSet, result: inout Set<Element>?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ x: NSSet, result: inout Set<Element>?) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSSet?) -> Set<Element> { fatalError() }
}

// https://developer.apple.com/documentation/foundation/nsnumber
extension NSNumber: ExpressibleByFloatLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral {
    public required convenience init(integerLiteral value: Int) { fatalError() }
    public required convenience init(floatLiteral value: Double) { fatalError() }
    public required convenience init(booleanLiteral value: Bool) { fatalError() }
}

// https://developer.apple.com/documentation/foundation/nsstring
extension NSString: ExpressibleByStringLiteral {
    public required convenience init(stringLiteral value: StaticString) { fatalError() }
}

// https://developer.apple.com/documentation/foundation/nsfastenumeration
public struct NSFastEnumerationIterator: IteratorProtocol {
    public init(_ enumerable: any NSFastEnumeration) {}
    public mutating func next() -> Any? { fatalError() }
}
// https://developer.apple.com/documentation/foundation/nsenumerator
extension NSEnumerator: Sequence {
    @available(*, noasync)
    public func makeIterator() -> NSFastEnumerationIterator { fatalError() }
}
extension NSArray: Sequence {
    public func makeIterator() -> NSFastEnumerationIterator { fatalError() }
}

// https://developer.apple.com/documentation/foundation/nsdictionary
extension NSDictionary: Sequence {
    public struct Iterator: IteratorProtocol {
        public mutating func next() -> (key: Any, value: Any)? { fatalError() }
    }
    public func makeIterator() -> Iterator { fatalError() }
    @objc public subscript(key: Any) -> Any? {
        @objc(__swift_objectForKeyedSubscript:) get { fatalError() }
    }
}

// https://developer.apple.com/documentation/foundation/nsmutabledictionary
extension NSMutableDictionary {
    public override subscript(key: Any) -> Any? {
        get { fatalError() }
        @objc(__swift_setObject:forKeyedSubscript:) set {}
    }
}
