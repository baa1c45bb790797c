// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension NetworkRequest {
    /// Checks a request of Foundation's and makes one of it.
    ///
    /// Its `timeoutInterval` is what it is there: the longest silence, before the first byte of the response and between
    /// bytes. Its cache policy, service type and the like are not for sessions and are not looked at.
    public init(_ request: URLRequest, options: TransferOptions = .standard) throws(NetworkError) {
        let method = request.httpMethod ?? "GET"
        guard let url = request.url else {
            throw NetworkError(code: .invalidURL, phase: .checking, message: "The request has no URL. Give it one.")
        }
        var options = options
        let interval = request.timeoutInterval
        guard interval.isFinite, interval > 0 else {
            throw NetworkError(
                code: .invalidLimit, phase: .checking,
                message: "The request's timeoutInterval is no number above zero. Set one, or none in the options.",
                request: RequestSummary(method: method.isToken ? method : "(no method)", url: url))
        }
        // What is longer than 30 years is for ever, and Duration could not hold it.
        let limit: Duration? = interval < 1e9 ? .nanoseconds(max(Int64(interval * 1e9), 1)) : nil
        if interval != 60 {
            options.timeouts.firstByte = limit
            options.timeouts.idle = limit
        }
        var headers = HeaderFields()
        for (name, value) in (request.allHTTPHeaderFields ?? [:]).sorted(by: { $0.key < $1.key }) {
            headers.add(name, value)
        }
        try self.init(method, url: url, headers: headers, body: Self.body(of: request), options: options)
    }

    private static func body(of request: URLRequest) -> RequestBody {
        if let data = request.httpBody { return data.isEmpty ? .none : .data(data) }
        guard let stream = request.httpBodyStream else { return .none }
        // The request's copies share the stream, as they do in Foundation: whoever reads it first has it.
        nonisolated(unsafe) let shared = stream
        return .stream(shared)
    }
}
