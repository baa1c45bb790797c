// Swift extensions of Foundation's classes.

// https://developer.apple.com/documentation/foundation/nslocking/withlock(_:)
extension NSLocking {
    public func withLock<R>(_ body: () throws -> R) rethrows -> R { try body() }
}

// https://developer.apple.com/documentation/foundation/filemanager
extension FileManager {
    public func enumerator(
        at url: URL, includingPropertiesForKeys keys: [URLResourceKey]?, options mask: FileManager.DirectoryEnumerationOptions = [],
        errorHandler handler: ((URL, any Error) -> Bool)? = nil
    ) -> FileManager.DirectoryEnumerator? { fatalError() }
    @discardableResult
    public func replaceItemAt(
        _ originalItemURL: URL, withItemAt newItemURL: URL, backupItemName: String? = nil,
        options: FileManager.ItemReplacementOptions = []
    ) throws -> URL? { fatalError() }
}

// https://developer.apple.com/documentation/foundation/filehandle
extension FileHandle {
    public func readToEnd() throws -> Data? { fatalError() }
    public func read(upToCount count: Int) throws -> Data? { fatalError() }
    public func write<T: DataProtocol>(contentsOf data: T) throws {}
    public func offset() throws -> UInt64 { fatalError() }
    @discardableResult public func seekToEnd() throws -> UInt64 { fatalError() }
}

// https://developer.apple.com/documentation/foundation/progress/performascurrent(withpendingunitcount:using:)
extension Progress {
    public func performAsCurrent<ReturnType>(
        withPendingUnitCount unitCount: Int64, using work: () throws -> ReturnType
    ) rethrows -> ReturnType { try work() }
    public var estimatedTimeRemaining: TimeInterval? {
        get { fatalError() }
        set {}
    }
    public var throughput: Int? {
        get { fatalError() }
        set {}
    }
}

// https://developer.apple.com/documentation/foundation/urlsessiontasktransactionmetrics/remoteport
extension URLSessionTaskTransactionMetrics {
    public var localPort: Int? { fatalError() }
    public var remotePort: Int? { fatalError() }
}

// https://developer.apple.com/documentation/foundation/urlsession/data(for:delegate:)
extension URLSession {
    public func data(for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (
        Data, URLResponse
    ) { fatalError() }
    public func data(from url: URL, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (Data, URLResponse) {
        fatalError()
    }
    public func upload(
        for request: URLRequest, fromFile fileURL: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) { fatalError() }
    public func upload(
        for request: URLRequest, from bodyData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) { fatalError() }
    public func download(for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (
        URL, URLResponse
    ) { fatalError() }
}

// https://developer.apple.com/documentation/foundation/urlrequest
public struct URLRequest: Equatable, Hashable, Sendable {
    public typealias CachePolicy = NSURLRequest.CachePolicy
    public typealias NetworkServiceType = NSURLRequest.NetworkServiceType
    public typealias Attribution = NSURLRequest.Attribution

    public init(url: URL, cachePolicy: CachePolicy = .useProtocolCachePolicy, timeoutInterval: TimeInterval = 60.0) {}
    public var url: URL? {
        get { fatalError() }
        set {}
    }
    public var cachePolicy: CachePolicy {
        get { fatalError() }
        set {}
    }
    public var timeoutInterval: TimeInterval {
        get { fatalError() }
        set {}
    }
    public var mainDocumentURL: URL? {
        get { fatalError() }
        set {}
    }
    public var networkServiceType: NetworkServiceType {
        get { fatalError() }
        set {}
    }
    public var allowsCellularAccess: Bool {
        get { fatalError() }
        set {}
    }
    public var allowsExpensiveNetworkAccess: Bool {
        get { fatalError() }
        set {}
    }
    public var allowsConstrainedNetworkAccess: Bool {
        get { fatalError() }
        set {}
    }
    public var assumesHTTP3Capable: Bool {
        get { fatalError() }
        set {}
    }
    public var attribution: Attribution {
        get { fatalError() }
        set {}
    }
    public var httpMethod: String? {
        get { fatalError() }
        set {}
    }
    public var allHTTPHeaderFields: [String: String]? {
        get { fatalError() }
        set {}
    }
    public func value(forHTTPHeaderField field: String) -> String? { fatalError() }
    public mutating func setValue(_ value: String?, forHTTPHeaderField field: String) {}
    public mutating func addValue(_ value: String, forHTTPHeaderField field: String) {}
    public var httpBody: Data? {
        get { fatalError() }
        set {}
    }
    public var httpBodyStream: InputStream? {
        get { fatalError() }
        set {}
    }
    public var httpShouldHandleCookies: Bool {
        get { fatalError() }
        set {}
    }
    public var httpShouldUsePipelining: Bool {
        get { fatalError() }
        set {}
    }
    public func hash(into hasher: inout Hasher) {}
    public static func == (lhs: URLRequest, rhs: URLRequest) -> Bool { fatalError() }
}
extension URLRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { fatalError() }
    public var debugDescription: String { fatalError() }
    public var customMirror: Mirror { fatalError() }
}
