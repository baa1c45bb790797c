// Encoders and decoders of JSON, and the decoder of property lists.

// https://developer.apple.com/documentation/foundation/jsonencoder
open class JSONEncoder {
    // https://developer.apple.com/documentation/foundation/jsonencoder/outputformatting-swift.struct
    public struct OutputFormatting: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public static let prettyPrinted = OutputFormatting(rawValue: 1 << 0)
        public static let sortedKeys = OutputFormatting(rawValue: 1 << 1)
        public static let withoutEscapingSlashes = OutputFormatting(rawValue: 1 << 3)
    }
    // https://developer.apple.com/documentation/foundation/jsonencoder/dateencodingstrategy-swift.enum
    public enum DateEncodingStrategy: Sendable {
        case deferredToDate
        case secondsSince1970
        case millisecondsSince1970
        case iso8601
        case formatted(DateFormatter)
        @preconcurrency case custom(@Sendable (Date, any Encoder) throws -> Void)
    }
    // https://developer.apple.com/documentation/foundation/jsonencoder/dataencodingstrategy-swift.enum
    public enum DataEncodingStrategy: Sendable {
        case deferredToData
        case base64
        @preconcurrency case custom(@Sendable (Data, any Encoder) throws -> Void)
    }
    // https://developer.apple.com/documentation/foundation/jsonencoder/nonconformingfloatencodingstrategy-swift.enum
    public enum NonConformingFloatEncodingStrategy: Sendable {
        case `throw`
        case convertToString(positiveInfinity: String, negativeInfinity: String, nan: String)
    }
    // https://developer.apple.com/documentation/foundation/jsonencoder/keyencodingstrategy-swift.enum
    public enum KeyEncodingStrategy: Sendable {
        case useDefaultKeys
        case convertToSnakeCase
        @preconcurrency case custom(@Sendable (_ codingPath: [any CodingKey]) -> any CodingKey)
    }
    open var outputFormatting: OutputFormatting {
        get { fatalError() }
        set {}
    }
    open var dateEncodingStrategy: DateEncodingStrategy {
        get { fatalError() }
        set {}
    }
    open var dataEncodingStrategy: DataEncodingStrategy {
        get { fatalError() }
        set {}
    }
    open var nonConformingFloatEncodingStrategy: NonConformingFloatEncodingStrategy {
        get { fatalError() }
        set {}
    }
    open var keyEncodingStrategy: KeyEncodingStrategy {
        get { fatalError() }
        set {}
    }
    @preconcurrency open var userInfo: [CodingUserInfoKey: any Sendable] {
        get { fatalError() }
        set {}
    }
    public init() {}
    open func encode<T: Encodable>(_ value: T) throws -> Data { fatalError() }
}
extension JSONEncoder: @unchecked Sendable {}

// https://developer.apple.com/documentation/foundation/jsondecoder
open class JSONDecoder {
    // https://developer.apple.com/documentation/foundation/jsondecoder/datedecodingstrategy-swift.enum
    public enum DateDecodingStrategy: Sendable {
        case deferredToDate
        case secondsSince1970
        case millisecondsSince1970
        case iso8601
        case formatted(DateFormatter)
        @preconcurrency case custom(@Sendable (_ decoder: any Decoder) throws -> Date)
    }
    // https://developer.apple.com/documentation/foundation/jsondecoder/datadecodingstrategy-swift.enum
    public enum DataDecodingStrategy: Sendable {
        case deferredToData
        case base64
        @preconcurrency case custom(@Sendable (_ decoder: any Decoder) throws -> Data)
    }
    // https://developer.apple.com/documentation/foundation/jsondecoder/nonconformingfloatdecodingstrategy-swift.enum
    public enum NonConformingFloatDecodingStrategy: Sendable {
        case `throw`
        case convertFromString(positiveInfinity: String, negativeInfinity: String, nan: String)
    }
    // https://developer.apple.com/documentation/foundation/jsondecoder/keydecodingstrategy-swift.enum
    public enum KeyDecodingStrategy: Sendable {
        case useDefaultKeys
        case convertFromSnakeCase
        @preconcurrency case custom(@Sendable (_ codingPath: [any CodingKey]) -> any CodingKey)
    }
    open var dateDecodingStrategy: DateDecodingStrategy {
        get { fatalError() }
        set {}
    }
    open var dataDecodingStrategy: DataDecodingStrategy {
        get { fatalError() }
        set {}
    }
    open var nonConformingFloatDecodingStrategy: NonConformingFloatDecodingStrategy {
        get { fatalError() }
        set {}
    }
    open var keyDecodingStrategy: KeyDecodingStrategy {
        get { fatalError() }
        set {}
    }
    @preconcurrency open var userInfo: [CodingUserInfoKey: any Sendable] {
        get { fatalError() }
        set {}
    }
    open var allowsJSON5: Bool {
        get { fatalError() }
        set {}
    }
    open var assumesTopLevelDictionary: Bool {
        get { fatalError() }
        set {}
    }
    public init() {}
    open func decode<T: Decodable>(_ type: T.Type, from data: Data) throws -> T { fatalError() }
}
extension JSONDecoder: @unchecked Sendable {}

// https://developer.apple.com/documentation/foundation/propertylistdecoder
open class PropertyListDecoder {
    @preconcurrency open var userInfo: [CodingUserInfoKey: any Sendable] {
        get { fatalError() }
        set {}
    }
    public init() {}
    open func decode<T: Decodable>(_ type: T.Type, from data: Data) throws -> T { fatalError() }
}
extension PropertyListDecoder: @unchecked Sendable {}
