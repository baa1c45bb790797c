// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import NetworkBenchmarkSupport
import OperationNetworking

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A client that sends small requests, a number of them at a time, and prints the time and the failures.
///
/// Each request that ends begins the next request. The client runs in its own process, so that its processor time can
/// be measured.
struct TransportClient {
    let url: URL
    let count: Int
    let inFlight: Int

    init?(_ arguments: [String]) {
        guard arguments.count == 3, let url = URL(string: arguments[0]), let count = Int(arguments[1]),
            let inFlight = Int(arguments[2])
        else { return nil }
        (self.url, self.count, self.inFlight) = (url, count, inFlight)
    }

    func run(_ kind: String) {
        let start = DispatchTime.now().uptimeNanoseconds
        let failed: Int
        switch kind {
        #if OPERATIONKIT_LIBCURL
            case "curl": failed = runCurlSession()
        #endif
        default: failed = runURLSession()
        }
        let seconds = Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
        print("\(seconds) \(ProcessTime.microseconds) \(failed)")
    }

    private func runURLSession() -> Int {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpMaximumConnectionsPerHost = inFlight
        let session = URLSession(configuration: configuration)
        let rest = Countdown(count)
        @Sendable func next() {
            guard rest.takeOne() else { return }
            session.dataTask(with: URLRequest(url: url)) { data, response, _ in
                rest.end(isGood: data != nil && (response as? HTTPURLResponse)?.statusCode == 200)
                next()
            }.resume()
        }
        for _ in 0..<inFlight { next() }
        return rest.wait()
    }

    #if OPERATIONKIT_LIBCURL
        private func runCurlSession() -> Int {
            var configuration = CurlSession.Configuration()
            configuration.maximumConnectionsPerHost = inFlight
            configuration.proxy = .none
            let session = CurlSession(configuration: configuration)
            let rest = Countdown(count)
            for _ in 0..<inFlight { Collector.begin(url, session, rest) }
            return rest.wait()
        }
    #endif
}

#if OPERATIONKIT_LIBCURL
    /// A receiver that stores the body of a response and begins the next request.
    private final class Collector: NetworkReceiver {
        private let url: URL
        private let session: CurlSession
        private let rest: Countdown
        // Sendable: the property is used only in the calls of one task, which are consecutive.
        private nonisolated(unsafe) var data = Data()
        private nonisolated(unsafe) var status = 0

        init(_ url: URL, _ session: CurlSession, _ rest: Countdown) {
            (self.url, self.session, self.rest) = (url, session, rest)
        }

        static func begin(_ url: URL, _ session: CurlSession, _ rest: Countdown) {
            guard rest.takeOne(), let request = try? NetworkRequest(url: url) else { return }
            session.makeTask(with: request, receiver: Collector(url, session, rest)).resume()
        }

        func task(_ task: any NetworkTask, didReceive head: ResponseHead) { status = head.status }

        func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) { data.append(contentsOf: bytes) }

        func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
            rest.end(isGood: error == nil && status == 200 && !data.isEmpty)
            Self.begin(url, session, rest)
        }
    }
#endif
