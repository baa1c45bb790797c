// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationCore
    import OperationNetworking

    /// Tests the fallback to another platform session if libcurl cannot be found.
    final class Fallback: Sendable {
        private let url: URL
        private let notices = Locked<[String]>([])
        private let isNoticed = DispatchSemaphore(value: 0)

        /// Creates the test.
        ///
        /// Call this initializer before any session is used.
        init(_ url: URL) {
            self.url = url
            CurlLibrary.seek(only: "libcurl-of-nobody.so.4")
            OperationDiagnostics.handler = { [self] notice in
                // The handler may access the session that the notice is about.
                let transport = type(of: DefaultNetworkSession.platformTransport)
                notices.withLock { $0.append("\(notice) \(transport)") }
                isNoticed.signal()
            }
        }

        func run() throws {
            print("problem: \(CurlSession.problem.map { "\($0)" } ?? "none")")
            print("version: \(CurlSession.libraryVersion ?? "none")")
            print("transport: \(type(of: DefaultNetworkSession.platformTransport))")
            print("CurlSession: \(Waiting.run(try NetworkRequest(url: url), on: CurlSession.shared))")
            print("operation: \(try text(of: url))")
            for path in ["redirect", "secret", "cookie", "cookie"] {
                print("\(path): \(send("GET", path))")
            }
            print("upload: \(send("POST", "upload", .data(Data(count: 100_000))))")
            isNoticed.wait()
            for notice in notices.withLock({ $0 }) { print("notice: \(notice)") }
        }

        private func send(_ method: String, _ path: String, _ body: RequestBody = .none) -> String {
            guard let request = try? NetworkRequest(method, url: url.appendingPathComponent(path), body: body) else {
                return "no request"
            }
            return Waiting.run(request, on: DefaultNetworkSession.standard)
        }

        private func text(of url: URL) throws -> String {
            let operation = NetworkDataOperation(url: url, urlSession: .shared) { data, _ in
                String(decoding: data, as: UTF8.self)
            }
            operation.callbackQueue = DispatchQueue(label: "SessionProbe")
            return try operation.startAndWait()
        }
    }
#endif
