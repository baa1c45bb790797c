// Bytes: `Data` and the protocols of bytes.

// https://developer.apple.com/documentation/foundation/contiguousbytes
public protocol ContiguousBytes {
    func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R
}

extension Array: ContiguousBytes where Element == UInt8 {}
extension ArraySlice: ContiguousBytes where Element == UInt8 {}
extension ContiguousArray: ContiguousBytes where Element == UInt8 {}
extension UnsafeRawBufferPointer: ContiguousBytes {
    public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R { try body(self) }
}
extension UnsafeMutableRawBufferPointer: ContiguousBytes {
    public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try body(UnsafeRawBufferPointer(self))
    }
}

// https://developer.apple.com/documentation/foundation/dataprotocol
public protocol DataProtocol: RandomAccessCollection where Element == UInt8, SubSequence: DataProtocol {
    associatedtype Regions: BidirectionalCollection
    where
        Regions.Element: DataProtocol, Regions.Element: ContiguousBytes,
        Regions.Element.SubSequence: ContiguousBytes

    var regions: Regions { get }
    func firstRange<D: DataProtocol, R: RangeExpression>(of: D, in: R) -> Range<Index>? where R.Bound == Index
    func lastRange<D: DataProtocol, R: RangeExpression>(of: D, in: R) -> Range<Index>? where R.Bound == Index
    @discardableResult func copyBytes(to: UnsafeMutableRawBufferPointer, count: Int) -> Int
    @discardableResult func copyBytes<DestinationType>(to: UnsafeMutableBufferPointer<DestinationType>, count: Int) -> Int
    @discardableResult func copyBytes<R: RangeExpression>(to: UnsafeMutableRawBufferPointer, from: R) -> Int
    where R.Bound == Index
    @discardableResult
    func copyBytes<DestinationType, R: RangeExpression>(to: UnsafeMutableBufferPointer<DestinationType>, from: R) -> Int
    where R.Bound == Index
}

extension DataProtocol {
    public func firstRange<D: DataProtocol>(of data: D) -> Range<Index>? { fatalError() }
    public func lastRange<D: DataProtocol>(of data: D) -> Range<Index>? { fatalError() }
    public func firstRange<D: DataProtocol, R: RangeExpression>(of data: D, in range: R) -> Range<Index>?
    where R.Bound == Index { fatalError() }
    public func lastRange<D: DataProtocol, R: RangeExpression>(of data: D, in range: R) -> Range<Index>?
    where R.Bound == Index { fatalError() }
    @discardableResult public func copyBytes(to ptr: UnsafeMutableRawBufferPointer) -> Int { fatalError() }
    @discardableResult
    public func copyBytes<DestinationType>(to ptr: UnsafeMutableBufferPointer<DestinationType>) -> Int { fatalError() }
    @discardableResult public func copyBytes(to ptr: UnsafeMutableRawBufferPointer, count: Int) -> Int { fatalError() }
    @discardableResult
    public func copyBytes<DestinationType>(to ptr: UnsafeMutableBufferPointer<DestinationType>, count: Int) -> Int {
        fatalError()
    }
    @discardableResult
    public func copyBytes<R: RangeExpression>(to ptr: UnsafeMutableRawBufferPointer, from range: R) -> Int
    where R.Bound == Index { fatalError() }
    @discardableResult
    public func copyBytes<DestinationType, R: RangeExpression>(
        to ptr: UnsafeMutableBufferPointer<DestinationType>, from range: R
    ) -> Int where R.Bound == Index { fatalError() }
}

extension Array: DataProtocol where Element == UInt8 {
    public var regions: CollectionOfOne<[UInt8]> { fatalError() }
}
extension ArraySlice: DataProtocol where Element == UInt8 {
    public var regions: CollectionOfOne<ArraySlice<UInt8>> { fatalError() }
}
extension ContiguousArray: DataProtocol where Element == UInt8 {
    public var regions: CollectionOfOne<ContiguousArray<UInt8>> { fatalError() }
}
extension UnsafeRawBufferPointer: DataProtocol {
    public var regions: CollectionOfOne<UnsafeRawBufferPointer> { fatalError() }
}
extension Slice: DataProtocol where Base: DataProtocol {
    public typealias Regions = [Base.Regions.Element.SubSequence]
    public var regions: [Base.Regions.Element.SubSequence] { fatalError() }
}
extension Slice: ContiguousBytes where Base: ContiguousBytes {
    public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R { fatalError() }
}

// https://developer.apple.com/documentation/foundation/mutabledataprotocol
public protocol MutableDataProtocol: DataProtocol, MutableCollection, RangeReplaceableCollection {
    mutating func resetBytes<R: RangeExpression>(in range: R) where R.Bound == Index
}
extension MutableDataProtocol {
    public mutating func resetBytes<R: RangeExpression>(in range: R) where R.Bound == Index {}
}

// https://developer.apple.com/documentation/foundation/data
@frozen public struct Data: Equatable, Hashable, RandomAccessCollection, MutableCollection, RangeReplaceableCollection,
    MutableDataProtocol, ContiguousBytes, Sendable
{
    public typealias Index = Int
    public typealias Indices = Range<Int>
    public typealias Element = UInt8
    public typealias SubSequence = Data
    public typealias ReadingOptions = NSData.ReadingOptions
    public typealias WritingOptions = NSData.WritingOptions
    public typealias SearchOptions = NSData.SearchOptions
    public typealias Base64EncodingOptions = NSData.Base64EncodingOptions
    public typealias Base64DecodingOptions = NSData.Base64DecodingOptions

    // https://developer.apple.com/documentation/foundation/data/deallocator
    public enum Deallocator {
        case virtualMemory
        case unmap
        case free
        case none
        case custom((UnsafeMutableRawPointer, Int) -> Void)
    }

    public init() { fatalError() }
    public init(bytes: UnsafeRawPointer, count: Int) { fatalError() }
    public init<SourceType>(buffer: UnsafeBufferPointer<SourceType>) { fatalError() }
    public init<SourceType>(buffer: UnsafeMutableBufferPointer<SourceType>) { fatalError() }
    public init(repeating repeatedValue: UInt8, count: Int) { fatalError() }
    public init(capacity: Int) { fatalError() }
    public init(count: Int) { fatalError() }
    public init(bytesNoCopy bytes: UnsafeMutableRawPointer, count: Int, deallocator: Data.Deallocator) { fatalError() }
    public init<S: Sequence>(_ elements: S) where S.Element == UInt8 { fatalError() }
    public init(contentsOf url: __shared URL, options: Data.ReadingOptions = []) throws { fatalError() }
    public init?(base64Encoded base64String: __shared String, options: Data.Base64DecodingOptions = []) { fatalError() }
    public init?(base64Encoded base64Data: __shared Data, options: Data.Base64DecodingOptions = []) { fatalError() }
    public init(referencing reference: __shared NSData) { fatalError() }

    public mutating func reserveCapacity(_ minimumCapacity: Int) {}
    public var count: Int {
        get { fatalError() }
        set {}
    }
    public var regions: CollectionOfOne<Data> { fatalError() }

    public func withUnsafeBytes<ResultType>(_ body: (UnsafeRawBufferPointer) throws -> ResultType) rethrows -> ResultType {
        fatalError()
    }
    @available(swift, deprecated: 5, message: "use `withUnsafeBytes<R>(_: (UnsafeRawBufferPointer) throws -> R) rethrows -> R` instead")
    public func withUnsafeBytes<ResultType, ContentType>(
        _ body: (UnsafePointer<ContentType>) throws -> ResultType
    ) rethrows -> ResultType { fatalError() }
    public func withContiguousStorageIfAvailable<ResultType>(
        _ body: (_ buffer: UnsafeBufferPointer<UInt8>) throws -> ResultType
    ) rethrows -> ResultType? { fatalError() }
    public mutating func withUnsafeMutableBytes<ResultType>(
        _ body: (UnsafeMutableRawBufferPointer) throws -> ResultType
    ) rethrows -> ResultType { fatalError() }
    @available(swift, deprecated: 5, message: "use `withUnsafeMutableBytes<R>(_: (UnsafeMutableRawBufferPointer) throws -> R) rethrows -> R` instead")
    public mutating func withUnsafeMutableBytes<ResultType, ContentType>(
        _ body: (UnsafeMutablePointer<ContentType>) throws -> ResultType
    ) rethrows -> ResultType { fatalError() }

    public func copyBytes(to pointer: UnsafeMutablePointer<UInt8>, count: Int) {}
    public func copyBytes(to pointer: UnsafeMutablePointer<UInt8>, from range: Range<Data.Index>) {}
    public func copyBytes<DestinationType>(
        to buffer: UnsafeMutableBufferPointer<DestinationType>, from range: Range<Data.Index>? = nil
    ) -> Int { fatalError() }

    public func write(to url: URL, options: Data.WritingOptions = []) throws {}
    public func range(of dataToFind: Data, options: Data.SearchOptions = [], in range: Range<Data.Index>? = nil)
        -> Range<Data.Index>?
    { fatalError() }

    public mutating func append(_ bytes: UnsafePointer<UInt8>, count: Int) {}
    public mutating func append(_ other: Data) {}
    public mutating func append<SourceType>(_ buffer: UnsafeBufferPointer<SourceType>) {}
    public mutating func append(contentsOf bytes: [UInt8]) {}
    public mutating func append<S: Sequence>(contentsOf elements: S) where S.Element == UInt8 {}
    public mutating func resetBytes(in range: Range<Data.Index>) {}
    public mutating func replaceSubrange(_ subrange: Range<Data.Index>, with data: Data) {}
    public mutating func replaceSubrange<SourceType>(
        _ subrange: Range<Data.Index>, with buffer: UnsafeBufferPointer<SourceType>
    ) {}
    public mutating func replaceSubrange<ByteCollection: Collection>(
        _ subrange: Range<Data.Index>, with newElements: ByteCollection
    ) where ByteCollection.Iterator.Element == Data.Iterator.Element {}
    public mutating func replaceSubrange(_ subrange: Range<Data.Index>, with bytes: UnsafeRawPointer, count cnt: Int) {}

    public func subdata(in range: Range<Data.Index>) -> Data { fatalError() }
    public func base64EncodedString(options: Data.Base64EncodingOptions = []) -> String { fatalError() }
    public func base64EncodedData(options: Data.Base64EncodingOptions = []) -> Data { fatalError() }
    public func hash(into hasher: inout Hasher) {}
    public func advanced(by amount: Int) -> Data { fatalError() }

    public subscript(index: Data.Index) -> UInt8 {
        get { fatalError() }
        set {}
    }
    public subscript(bounds: Range<Data.Index>) -> Data {
        get { fatalError() }
        set {}
    }
    public subscript<R: RangeExpression>(_ rangeExpression: R) -> Data where R.Bound: FixedWidthInteger {
        get { fatalError() }
        set {}
    }
    public var startIndex: Data.Index { fatalError() }
    public var endIndex: Data.Index { fatalError() }
    public func index(before i: Data.Index) -> Data.Index { fatalError() }
    public func index(after i: Data.Index) -> Data.Index { fatalError() }
    public var indices: Range<Int> { fatalError() }
    public func makeIterator() -> Data.Iterator { fatalError() }

    public struct Iterator: IteratorProtocol, Sendable {
        public mutating func next() -> UInt8? { fatalError() }
    }

    public static func == (d1: Data, d2: Data) -> Bool { fatalError() }
}

extension Data: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { fatalError() }
    public var debugDescription: String { fatalError() }
    public var customMirror: Mirror { fatalError() }
}
extension Data: Codable {
    public init(from decoder: any Decoder) throws { fatalError() }
    public func encode(to encoder: any Encoder) throws {}
}

// https://developer.apple.com/documentation/foundation/uuid
public struct UUID: Hashable, Equatable, CustomStringConvertible, Sendable {
    public init() {}
    public init?(uuidString string: __shared String) {}
    public var uuidString: String { fatalError() }
    public func hash(into hasher: inout Hasher) {}
    public var description: String { fatalError() }
    public static func == (lhs: UUID, rhs: UUID) -> Bool { fatalError() }
}
extension UUID: Codable {
    public init(from decoder: any Decoder) throws {}
    public func encode(to encoder: any Encoder) throws {}
}
extension UUID: Comparable {
    @available(macOS 13.0, iOS 16.0, tvOS 16.0, watchOS 9.0, visionOS 1.0, *)
    public static func < (lhs: UUID, rhs: UUID) -> Bool { fatalError() }
}
