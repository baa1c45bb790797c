// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import Testing

    /// A separate session and the base of the httpbin service.
    struct HttpbinBench: Sendable {
        let session: ExchangeSession
        let base: NetworkBase
        private let transport: CurlSession

        init(_ server: HttpbinServer, _ configure: (inout ExchangeConfiguration) -> Void) throws {
            var configuration = ExchangeConfiguration()
            configure(&configuration)
            transport = CurlSession.direct()
            session = ExchangeSession(over: transport, configuration: configuration)
            guard let url = URL(string: "http://127.0.0.1:\(server.port)/") else {
                throw ServerFailure(description: "no URL")
            }
            var base = NetworkBase(url)
            base.session = session
            base.callbackQueue = DispatchQueue(label: "HttpbinBench")
            self.base = base
        }

        func close() { transport.close() }

        /// A URL of the service.
        func url(_ target: String) throws -> URL {
            guard let url = URL(string: target, relativeTo: base.url) else {
                throw ServerFailure(description: "\(target) is no URL")
            }
            return url.absoluteURL
        }

        /// Sends a GET request and returns the service's echo of it.
        func get(_ path: String, _ query: [String: (any Sendable)?] = [:]) async throws -> Echo<NoContent> {
            try await base.get(path, query).run()
        }

        /// An operation that returns the body as text, whatever its content type.
        func text(_ target: String, _ headers: HeaderFields = [:]) throws -> NetworkDataOperation<String> {
            let request = try NetworkRequest(url: url(target), headers: headers)
            return NetworkDataOperation<String>(request: request, urlSession: session)
        }

        /// An operation that sends a body and returns the service's echo of it.
        func upload(_ body: RequestBody, by method: String = "POST") throws -> NetworkUploadOperation<Echo<NoContent>> {
            NetworkUploadOperation(url: try url("anything"), method: method, body: body, urlSession: session) {
                data, _ in
                try JSONDecoder().decode(Echo<NoContent>.self, from: data)
            }
        }
    }

    /// The description that httpbin returns of a request.
    struct Echo<Sent: Decodable & Sendable>: Decodable, Sendable {
        /// One value, or several values with the same name.
        struct Values: Decodable, Sendable, Equatable, ExpressibleByStringLiteral, ExpressibleByArrayLiteral {
            let all: [String]

            init(stringLiteral value: String) { all = [value] }
            init(arrayLiteral values: String...) { all = values }

            init(from decoder: any Decoder) throws {
                let container = try decoder.singleValueContainer()
                if let one = try? container.decode(String.self) {
                    all = [one]
                } else {
                    all = try container.decode([String].self)
                }
            }
        }

        let url: String
        let args: [String: Values]
        let headers: [String: String]
        let method: String?
        let data: String?
        let form: [String: Values]?
        let files: [String: Values]?
        let json: Sent?

        /// The body as bytes.
        ///
        /// httpbin returns binary data as a data URL.
        var bytes: Data {
            let text = data ?? ""
            guard text.hasPrefix("data:"), let comma = text.firstIndex(of: ",") else { return Data(text.utf8) }
            return Data(base64Encoded: String(text[text.index(after: comma)...])) ?? Data()
        }
    }
#endif
