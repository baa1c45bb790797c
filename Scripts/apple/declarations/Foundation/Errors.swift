// Errors: Swift extensions of `NSError`, and the error structures.

import Darwin

// https://developer.apple.com/documentation/foundation/nserror
// `NSError` conforms to `Error`, and each `Error` can be converted to an `NSError`.
extension NSError: Error {
    public var _domain: String { domain }
    public var _code: Int { code }
    public var _userInfo: AnyObject? { fatalError() }
    public func _getEmbeddedNSError() -> AnyObject? { self }
}

// The compiler calls these two functions for methods that throw.
public func _convertErrorToNSError(_ error: any Error) -> NSError { fatalError() }
public func _convertNSErrorToError(_ error: NSError?) -> any Error { fatalError() }

// https://developer.apple.com/documentation/foundation/localizederror
public protocol LocalizedError: Error {
    var errorDescription: String? { get }
    var failureReason: String? { get }
    var recoverySuggestion: String? { get }
    var helpAnchor: String? { get }
}
extension LocalizedError {
    public var errorDescription: String? { nil }
    public var failureReason: String? { nil }
    public var recoverySuggestion: String? { nil }
    public var helpAnchor: String? { nil }
}

// https://developer.apple.com/documentation/foundation/customnserror
public protocol CustomNSError: Error {
    static var errorDomain: String { get }
    var errorCode: Int { get }
    var errorUserInfo: [String: Any] { get }
}
extension CustomNSError {
    public static var errorDomain: String { fatalError() }
    public var errorCode: Int { fatalError() }
    public var errorUserInfo: [String: Any] { [:] }
}

// https://developer.apple.com/documentation/swift/error/localizeddescription
extension Error {
    public var localizedDescription: String { fatalError() }
}

// The protocols that bridge error structures to `NSError`. The compiler looks them up by name, and Apple's documentation has no page for
// them. The Swift proposal describes them. Foundation for Linux also declares them, in Sources/Foundation/NSError.swift.
// https://github.com/swiftlang/swift-evolution/blob/main/proposals/0112-nserror-bridging.md
// https://github.com/swiftlang/swift-corelibs-foundation
public protocol _ObjectiveCBridgeableError: Error {
    init?(_bridgedNSError error: __shared NSError)
}
public protocol _BridgedNSError: RawRepresentable, Error {
    static var _nsErrorDomain: String { get }
}
extension _BridgedNSError where RawValue: SignedInteger {
    public var _domain: String { Self._nsErrorDomain }
    public var _code: Int { Int(rawValue) }
}
public protocol __BridgedNSError: Error {
    static var _nsErrorDomain: String { get }
}
public protocol _ErrorCodeProtocol: Equatable {
    associatedtype _ErrorType: _BridgedStoredNSError where _ErrorType.Code == Self
}
extension _ErrorCodeProtocol {
    public static func ~= (match: Self, error: any Error) -> Bool { fatalError() }
}
public protocol _BridgedStoredNSError: _ObjectiveCBridgeableError, CustomNSError, Hashable, CustomStringConvertible {
    associatedtype Code: _ErrorCodeProtocol, RawRepresentable where Code.RawValue: FixedWidthInteger
    var _nsError: NSError { get }
    init(_nsError error: NSError)
    static var errorDomain: String { get }
}
extension _BridgedStoredNSError {
    public init?(_bridgedNSError error: NSError) { self.init(_nsError: error) }
    public init(_ code: Code, userInfo: [String: Any] = [:]) { fatalError() }
    public var code: Code { fatalError() }
    public var userInfo: [String: Any] { fatalError() }
    public var errorCode: Int { fatalError() }
    public var errorUserInfo: [String: Any] { fatalError() }
    public var localizedDescription: String { fatalError() }
    public var _domain: String { fatalError() }
    public var _code: Int { fatalError() }
    public var _userInfo: AnyObject? { fatalError() }
    public var description: String { fatalError() }
    public func hash(into hasher: inout Hasher) {}
    public static func == (lhs: Self, rhs: Self) -> Bool { fatalError() }
}

// https://developer.apple.com/documentation/foundation/cocoaerror
public struct CocoaError: _BridgedStoredNSError {
    public let _nsError: NSError
    public init(_nsError error: NSError) { _nsError = error }
    public static var errorDomain: String { NSCocoaErrorDomain }

    // https://developer.apple.com/documentation/foundation/cocoaerror/code
    public struct Code: RawRepresentable, Hashable, Sendable, _ErrorCodeProtocol {
        public typealias _ErrorType = CocoaError
        public let rawValue: Int
        public init(rawValue: Int) { self.rawValue = rawValue }
    }
    public static func error(_ code: CocoaError.Code, userInfo: [AnyHashable: Any]? = nil, url: URL? = nil) -> any Error {
        fatalError()
    }
    public var filePath: String? { fatalError() }
    public var stringEncoding: String.Encoding? { fatalError() }
    public var underlying: (any Error)? { fatalError() }
    public var url: URL? { fatalError() }
}
extension CocoaError.Code {
    public static var fileNoSuchFile: CocoaError.Code { .init(rawValue: 4) }
    public static var fileLocking: CocoaError.Code { .init(rawValue: 255) }
    public static var fileReadUnknown: CocoaError.Code { .init(rawValue: 256) }
    public static var fileReadNoPermission: CocoaError.Code { .init(rawValue: 257) }
    public static var fileReadInvalidFileName: CocoaError.Code { .init(rawValue: 258) }
    public static var fileReadCorruptFile: CocoaError.Code { .init(rawValue: 259) }
    public static var fileReadNoSuchFile: CocoaError.Code { .init(rawValue: 260) }
    public static var fileReadUnsupportedScheme: CocoaError.Code { .init(rawValue: 262) }
    public static var fileReadTooLarge: CocoaError.Code { .init(rawValue: 263) }
    public static var fileWriteUnknown: CocoaError.Code { .init(rawValue: 512) }
    public static var fileWriteNoPermission: CocoaError.Code { .init(rawValue: 513) }
    public static var fileWriteInvalidFileName: CocoaError.Code { .init(rawValue: 514) }
    public static var fileWriteFileExists: CocoaError.Code { .init(rawValue: 516) }
    public static var fileWriteOutOfSpace: CocoaError.Code { .init(rawValue: 640) }
    public static var fileWriteVolumeReadOnly: CocoaError.Code { .init(rawValue: 642) }
    public static var userCancelled: CocoaError.Code { .init(rawValue: 3072) }
}
extension CocoaError {
    public static var fileNoSuchFile: CocoaError.Code { .fileNoSuchFile }
    public static var fileReadUnknown: CocoaError.Code { .fileReadUnknown }
    public static var fileReadNoPermission: CocoaError.Code { .fileReadNoPermission }
    public static var fileReadInvalidFileName: CocoaError.Code { .fileReadInvalidFileName }
    public static var fileReadCorruptFile: CocoaError.Code { .fileReadCorruptFile }
    public static var fileReadNoSuchFile: CocoaError.Code { .fileReadNoSuchFile }
    public static var fileWriteUnknown: CocoaError.Code { .fileWriteUnknown }
    public static var fileWriteNoPermission: CocoaError.Code { .fileWriteNoPermission }
    public static var fileWriteFileExists: CocoaError.Code { .fileWriteFileExists }
    public static var fileWriteOutOfSpace: CocoaError.Code { .fileWriteOutOfSpace }
    public static var userCancelled: CocoaError.Code { .userCancelled }
}

// https://developer.apple.com/documentation/foundation/urlerror
public struct URLError: _BridgedStoredNSError {
    public let _nsError: NSError
    public init(_nsError error: NSError) { _nsError = error }
    public static var errorDomain: String { NSURLErrorDomain }

    // https://developer.apple.com/documentation/foundation/urlerror/code
    public struct Code: RawRepresentable, Hashable, Sendable, _ErrorCodeProtocol {
        public typealias _ErrorType = URLError
        public let rawValue: Int
        public init(rawValue: Int) { self.rawValue = rawValue }
    }
    // https://developer.apple.com/documentation/foundation/urlerror/networkunavailablereason-swift.enum
    public enum NetworkUnavailableReason: Int, Sendable {
        case cellular = 0
        case expensive = 1
        case constrained = 2
    }
    // https://developer.apple.com/documentation/foundation/urlerror/backgroundtaskcancelledreason-swift.enum
    public enum BackgroundTaskCancelledReason: Int, Sendable {
        case userForceQuitApplication
        case backgroundUpdatesDisabled
        case insufficientSystemResources
    }
    public var failingURL: URL? { fatalError() }
    public var failureURLString: String? { fatalError() }
    public var networkUnavailableReason: NetworkUnavailableReason? { fatalError() }
    public var backgroundTaskCancelledReason: BackgroundTaskCancelledReason? { fatalError() }
    // https://developer.apple.com/documentation/foundation/urlerror/downloadtaskresumedata
    public var downloadTaskResumeData: Data? { fatalError() }
    // https://developer.apple.com/documentation/foundation/urlerror/uploadtaskresumedata
    public var uploadTaskResumeData: Data? { fatalError() }
}
// https://developer.apple.com/documentation/foundation/urlerror/code
extension URLError.Code {
    public static var unknown: URLError.Code { .init(rawValue: -1) }
    public static var cancelled: URLError.Code { .init(rawValue: -999) }
    public static var badURL: URLError.Code { .init(rawValue: -1000) }
    public static var timedOut: URLError.Code { .init(rawValue: -1001) }
    public static var unsupportedURL: URLError.Code { .init(rawValue: -1002) }
    public static var cannotFindHost: URLError.Code { .init(rawValue: -1003) }
    public static var cannotConnectToHost: URLError.Code { .init(rawValue: -1004) }
    public static var networkConnectionLost: URLError.Code { .init(rawValue: -1005) }
    public static var dnsLookupFailed: URLError.Code { .init(rawValue: -1006) }
    public static var httpTooManyRedirects: URLError.Code { .init(rawValue: -1007) }
    public static var resourceUnavailable: URLError.Code { .init(rawValue: -1008) }
    public static var notConnectedToInternet: URLError.Code { .init(rawValue: -1009) }
    public static var redirectToNonExistentLocation: URLError.Code { .init(rawValue: -1010) }
    public static var badServerResponse: URLError.Code { .init(rawValue: -1011) }
    public static var userCancelledAuthentication: URLError.Code { .init(rawValue: -1012) }
    public static var userAuthenticationRequired: URLError.Code { .init(rawValue: -1013) }
    public static var zeroByteResource: URLError.Code { .init(rawValue: -1014) }
    public static var cannotDecodeRawData: URLError.Code { .init(rawValue: -1015) }
    public static var cannotDecodeContentData: URLError.Code { .init(rawValue: -1016) }
    public static var cannotParseResponse: URLError.Code { .init(rawValue: -1017) }
    public static var internationalRoamingOff: URLError.Code { .init(rawValue: -1018) }
    public static var callIsActive: URLError.Code { .init(rawValue: -1019) }
    public static var dataNotAllowed: URLError.Code { .init(rawValue: -1020) }
    public static var requestBodyStreamExhausted: URLError.Code { .init(rawValue: -1021) }
    public static var appTransportSecurityRequiresSecureConnection: URLError.Code { .init(rawValue: -1022) }
    public static var fileDoesNotExist: URLError.Code { .init(rawValue: -1100) }
    public static var fileIsDirectory: URLError.Code { .init(rawValue: -1101) }
    public static var noPermissionsToReadFile: URLError.Code { .init(rawValue: -1102) }
    public static var dataLengthExceedsMaximum: URLError.Code { .init(rawValue: -1103) }
    public static var secureConnectionFailed: URLError.Code { .init(rawValue: -1200) }
    public static var serverCertificateHasBadDate: URLError.Code { .init(rawValue: -1201) }
    public static var serverCertificateUntrusted: URLError.Code { .init(rawValue: -1202) }
    public static var serverCertificateHasUnknownRoot: URLError.Code { .init(rawValue: -1203) }
    public static var serverCertificateNotYetValid: URLError.Code { .init(rawValue: -1204) }
    public static var clientCertificateRejected: URLError.Code { .init(rawValue: -1205) }
    public static var clientCertificateRequired: URLError.Code { .init(rawValue: -1206) }
    public static var cannotLoadFromNetwork: URLError.Code { .init(rawValue: -2000) }
    public static var cannotCreateFile: URLError.Code { .init(rawValue: -3000) }
    public static var cannotOpenFile: URLError.Code { .init(rawValue: -3001) }
    public static var cannotCloseFile: URLError.Code { .init(rawValue: -3002) }
    public static var cannotWriteToFile: URLError.Code { .init(rawValue: -3003) }
    public static var cannotRemoveFile: URLError.Code { .init(rawValue: -3004) }
    public static var cannotMoveFile: URLError.Code { .init(rawValue: -3005) }
    public static var downloadDecodingFailedMidStream: URLError.Code { .init(rawValue: -3006) }
    public static var downloadDecodingFailedToComplete: URLError.Code { .init(rawValue: -3007) }
    public static var backgroundSessionRequiresSharedContainer: URLError.Code { .init(rawValue: -995) }
    public static var backgroundSessionInUseByAnotherProcess: URLError.Code { .init(rawValue: -996) }
    public static var backgroundSessionWasDisconnected: URLError.Code { .init(rawValue: -997) }
}
extension URLError {
    public static var unknown: URLError.Code { .unknown }
    public static var cancelled: URLError.Code { .cancelled }
    public static var badURL: URLError.Code { .badURL }
    public static var timedOut: URLError.Code { .timedOut }
    public static var unsupportedURL: URLError.Code { .unsupportedURL }
    public static var cannotFindHost: URLError.Code { .cannotFindHost }
    public static var cannotConnectToHost: URLError.Code { .cannotConnectToHost }
    public static var networkConnectionLost: URLError.Code { .networkConnectionLost }
    public static var dnsLookupFailed: URLError.Code { .dnsLookupFailed }
    public static var httpTooManyRedirects: URLError.Code { .httpTooManyRedirects }
    public static var resourceUnavailable: URLError.Code { .resourceUnavailable }
    public static var notConnectedToInternet: URLError.Code { .notConnectedToInternet }
    public static var redirectToNonExistentLocation: URLError.Code { .redirectToNonExistentLocation }
    public static var badServerResponse: URLError.Code { .badServerResponse }
    public static var userCancelledAuthentication: URLError.Code { .userCancelledAuthentication }
    public static var userAuthenticationRequired: URLError.Code { .userAuthenticationRequired }
    public static var zeroByteResource: URLError.Code { .zeroByteResource }
    public static var cannotDecodeRawData: URLError.Code { .cannotDecodeRawData }
    public static var cannotDecodeContentData: URLError.Code { .cannotDecodeContentData }
    public static var cannotParseResponse: URLError.Code { .cannotParseResponse }
    public static var internationalRoamingOff: URLError.Code { .internationalRoamingOff }
    public static var callIsActive: URLError.Code { .callIsActive }
    public static var dataNotAllowed: URLError.Code { .dataNotAllowed }
    public static var requestBodyStreamExhausted: URLError.Code { .requestBodyStreamExhausted }
    public static var appTransportSecurityRequiresSecureConnection: URLError.Code { .appTransportSecurityRequiresSecureConnection }
    public static var fileDoesNotExist: URLError.Code { .fileDoesNotExist }
    public static var fileIsDirectory: URLError.Code { .fileIsDirectory }
    public static var noPermissionsToReadFile: URLError.Code { .noPermissionsToReadFile }
    public static var dataLengthExceedsMaximum: URLError.Code { .dataLengthExceedsMaximum }
    public static var secureConnectionFailed: URLError.Code { .secureConnectionFailed }
    public static var serverCertificateHasBadDate: URLError.Code { .serverCertificateHasBadDate }
    public static var serverCertificateUntrusted: URLError.Code { .serverCertificateUntrusted }
    public static var serverCertificateHasUnknownRoot: URLError.Code { .serverCertificateHasUnknownRoot }
    public static var serverCertificateNotYetValid: URLError.Code { .serverCertificateNotYetValid }
    public static var clientCertificateRejected: URLError.Code { .clientCertificateRejected }
    public static var clientCertificateRequired: URLError.Code { .clientCertificateRequired }
    public static var cannotLoadFromNetwork: URLError.Code { .cannotLoadFromNetwork }
    public static var cannotCreateFile: URLError.Code { .cannotCreateFile }
    public static var cannotOpenFile: URLError.Code { .cannotOpenFile }
    public static var cannotCloseFile: URLError.Code { .cannotCloseFile }
    public static var cannotWriteToFile: URLError.Code { .cannotWriteToFile }
    public static var cannotRemoveFile: URLError.Code { .cannotRemoveFile }
    public static var cannotMoveFile: URLError.Code { .cannotMoveFile }
    public static var downloadDecodingFailedMidStream: URLError.Code { .downloadDecodingFailedMidStream }
    public static var downloadDecodingFailedToComplete: URLError.Code { .downloadDecodingFailedToComplete }
    public static var backgroundSessionRequiresSharedContainer: URLError.Code { .backgroundSessionRequiresSharedContainer }
    public static var backgroundSessionInUseByAnotherProcess: URLError.Code { .backgroundSessionInUseByAnotherProcess }
    public static var backgroundSessionWasDisconnected: URLError.Code { .backgroundSessionWasDisconnected }
}
