// `URL` and its parts.

// https://developer.apple.com/documentation/foundation/url
public struct URL: Equatable, Sendable, Hashable {
    // https://developer.apple.com/documentation/foundation/url/directoryhint
    public enum DirectoryHint: Sendable {
        case isDirectory
        case notDirectory
        case checkFileSystem
        case inferFromPath
    }

    public init?(string: __shared String) {}
    public init?(string: __shared String, relativeTo url: __shared URL?) {}
    public init?(string: __shared String, encodingInvalidCharacters: Bool) {}
    public init(fileURLWithPath path: __shared String, isDirectory: Bool, relativeTo base: __shared URL?) {}
    public init(fileURLWithPath path: __shared String, relativeTo base: __shared URL?) {}
    public init(fileURLWithPath path: __shared String, isDirectory: Bool) {}
    public init(fileURLWithPath path: __shared String) {}
    public init(filePath path: String, directoryHint: URL.DirectoryHint = .inferFromPath, relativeTo base: URL? = nil) {}
    public init(fileURLWithFileSystemRepresentation path: UnsafePointer<Int8>, isDirectory: Bool, relativeTo base: __shared URL?) {}

    public var absoluteString: String { fatalError() }
    public var relativeString: String { fatalError() }
    public var baseURL: URL? { fatalError() }
    public var absoluteURL: URL { fatalError() }
    public var scheme: String? { fatalError() }
    public var host: String? { fatalError() }
    public func host(percentEncoded: Bool = true) -> String? { fatalError() }
    public var port: Int? { fatalError() }
    public var user: String? { fatalError() }
    public func user(percentEncoded: Bool = true) -> String? { fatalError() }
    public var password: String? { fatalError() }
    public func password(percentEncoded: Bool = true) -> String? { fatalError() }
    public var path: String { fatalError() }
    public func path(percentEncoded: Bool = true) -> String { fatalError() }
    public var relativePath: String { fatalError() }
    public var fragment: String? { fatalError() }
    public func fragment(percentEncoded: Bool = true) -> String? { fatalError() }
    public var query: String? { fatalError() }
    public func query(percentEncoded: Bool = true) -> String? { fatalError() }
    public var isFileURL: Bool { fatalError() }
    public var hasDirectoryPath: Bool { fatalError() }
    public var pathComponents: [String] { fatalError() }
    public var lastPathComponent: String { fatalError() }
    public var pathExtension: String { fatalError() }

    public func withUnsafeFileSystemRepresentation<ResultType>(
        _ block: (UnsafePointer<Int8>?) throws -> ResultType
    ) rethrows -> ResultType { fatalError() }

    public func appendingPathComponent(_ pathComponent: String, isDirectory: Bool) -> URL { fatalError() }
    public mutating func appendPathComponent(_ pathComponent: String, isDirectory: Bool) {}
    public func appendingPathComponent(_ pathComponent: String) -> URL { fatalError() }
    public mutating func appendPathComponent(_ pathComponent: String) {}
    public func deletingLastPathComponent() -> URL { fatalError() }
    public mutating func deleteLastPathComponent() {}
    public func appendingPathExtension(_ pathExtension: String) -> URL { fatalError() }
    public mutating func appendPathExtension(_ pathExtension: String) {}
    public func deletingPathExtension() -> URL { fatalError() }
    public mutating func deletePathExtension() {}
    public var standardized: URL { fatalError() }
    public mutating func standardize() {}
    public var standardizedFileURL: URL { fatalError() }
    public func resolvingSymlinksInPath() -> URL { fatalError() }
    public mutating func resolveSymlinksInPath() {}

    public func appending<S: StringProtocol>(path: S, directoryHint: URL.DirectoryHint = .inferFromPath) -> URL { fatalError() }
    public mutating func append<S: StringProtocol>(path: S, directoryHint: URL.DirectoryHint = .inferFromPath) {}
    public func appending<S: StringProtocol>(component: S, directoryHint: URL.DirectoryHint = .inferFromPath) -> URL {
        fatalError()
    }
    public mutating func append<S: StringProtocol>(component: S, directoryHint: URL.DirectoryHint = .inferFromPath) {}
    public func appending(queryItems: [URLQueryItem]) -> URL { fatalError() }
    public mutating func append(queryItems: [URLQueryItem]) {}

    public static func currentDirectory() -> URL { fatalError() }
    public static var homeDirectory: URL { fatalError() }
    public static var temporaryDirectory: URL { fatalError() }
    public static var cachesDirectory: URL { fatalError() }
    public static var documentsDirectory: URL { fatalError() }

    // https://developer.apple.com/documentation/foundation/url/resourcevalues(forkeys:)
    public func resourceValues(forKeys keys: Set<URLResourceKey>) throws -> URLResourceValues { fatalError() }
    public mutating func setResourceValues(_ values: URLResourceValues) throws {}
    public func checkResourceIsReachable() throws -> Bool { fatalError() }

    // https://developer.apple.com/documentation/foundation/nsurl/startaccessingsecurityscopedresource()
    public func startAccessingSecurityScopedResource() -> Bool { fatalError() }
    public func stopAccessingSecurityScopedResource() {}

    public func hash(into hasher: inout Hasher) {}
    public static func == (lhs: URL, rhs: URL) -> Bool { fatalError() }
}
extension URL: CustomStringConvertible, CustomDebugStringConvertible {
    public var description: String { fatalError() }
    public var debugDescription: String { fatalError() }
}
extension URL: Codable {
    public init(from decoder: any Decoder) throws {}
    public func encode(to encoder: any Encoder) throws {}
}

// https://developer.apple.com/documentation/foundation/urlresourcevalues
public struct URLResourceValues {
    public init() {}
    public var name: String? {
        get { fatalError() }
        set {}
    }
    public var isRegularFile: Bool? { fatalError() }
    public var isDirectory: Bool? { fatalError() }
    public var isSymbolicLink: Bool? { fatalError() }
    public var fileSize: Int? { fatalError() }
    public var contentModificationDate: Date? {
        get { fatalError() }
        set {}
    }
    public var isExcludedFromBackup: Bool? {
        get { fatalError() }
        set {}
    }
    public var volumeAvailableCapacity: Int? { fatalError() }
    // https://developer.apple.com/documentation/foundation/urlresourcevalues/volumeavailablecapacityforimportantusage
    @available(tvOS, unavailable)
    @available(watchOS, unavailable)
    public var volumeAvailableCapacityForImportantUsage: Int64? { fatalError() }
}

// https://developer.apple.com/documentation/foundation/urlqueryitem
public struct URLQueryItem: Hashable, Equatable, Sendable {
    public init(name: __shared String, value: __shared String?) {
        self.name = name
        self.value = value
    }
    public var name: String
    public var value: String?
}

// https://developer.apple.com/documentation/foundation/urlcomponents
public struct URLComponents: Hashable, Equatable, Sendable {
    public init() { fatalError() }
    public init?(url: __shared URL, resolvingAgainstBaseURL resolve: Bool) { fatalError() }
    public init?(string: __shared String) { fatalError() }
    public init?(string: __shared String, encodingInvalidCharacters: Bool) { fatalError() }
    public var url: URL? { fatalError() }
    public func url(relativeTo base: URL?) -> URL? { fatalError() }
    public var string: String? { fatalError() }
    public var scheme: String?
    public var user: String?
    public var password: String?
    public var host: String?
    public var port: Int?
    public var path: String
    public var query: String?
    public var fragment: String?
    public var percentEncodedUser: String?
    public var percentEncodedPassword: String?
    public var percentEncodedHost: String?
    public var encodedHost: String?
    public var percentEncodedPath: String
    public var percentEncodedQuery: String?
    public var percentEncodedFragment: String?
    public var queryItems: [URLQueryItem]?
    public var percentEncodedQueryItems: [URLQueryItem]?
}
