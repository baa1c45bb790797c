// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Dispatch
import Foundation
import NetworkBenchmarkSupport
import OperationNetworking

/// A client that sends requests with HTTP/2 over TLS.
private enum HTTP2Way: String, CaseIterable {
    /// The C program on libcurl.
    case peer
    /// A task of a `CurlSession`, without an operation.
    case task
    /// `try await NetworkDataOperation(url:) { … }.run()` over the default session.
    case operation
}

/// Returns the processor time of small requests with HTTP/2 over TLS, sixteen and a hundred streams at a time,
/// compared with a C program on libcurl.
///
/// No client decodes the body.
func http2Requests(_ scale: Scale) -> [Figure] {
    #if OPERATIONKIT_LIBCURL
        guard Preparation.run(), let server = LocalNginx(largeSize: 0, hasTLS: true) else {
            print("SKIPPED: there is no nginx or no openssl, and they cannot be installed (see above).")
            return []
        }
        defer { server.stop() }
        return http2Figures(server, streams: 16, scale) + http2Figures(server, streams: 100, scale)
    #else
        print("SKIPPED: this part compares the sessions on libcurl.")
        return []
    #endif
}

private func http2Figures(_ server: LocalNginx, streams: Int, _ scale: Scale) -> [Figure] {
    let count = scale.isSmoke ? 1_000 : 20_000
    let ways = HTTP2Way.allCases
    var costs: [HTTP2Way: [Double]] = [:]
    for round in 0..<(scale.isSmoke ? 1 : 7) {
        // The order changes in each round, because the state of the caches depends on the order.
        for index in ways.indices {
            let way = ways[(index + round) % ways.count]
            guard let cost = measure(way, server, count, streams) else { return [] }
            costs[way, default: []].append(cost)
        }
    }
    let target = scale.isSmoke || streams < 100 ? Figure.Target.none : .atMost(1.15)
    func figure(_ name: String, _ way: HTTP2Way) -> Figure? {
        guard let ours = costs[way], let peer = costs[.peer] else { return nil }
        return .ratio(
            "CPU per HTTP/2 request, \(streams) streams, \(name), to C", unit: "µs", Pair(ours: ours, peer: peer),
            target: target)
    }
    return [figure("a bare task", .task), figure("NetworkDataOperation { }.run()", .operation)].compactMap { $0 }
}

/// Returns the microseconds of processor time per request.
private func measure(_ way: HTTP2Way, _ server: LocalNginx, _ count: Int, _ streams: Int) -> Double? {
    let arguments = [server.secureURL("small"), "\(count)", "\(streams)", server.certificate]
    let child =
        way == .peer
        ? ChildProcess(["http2"] + arguments, program: Preparation.peer)
        : ChildProcess([NetworkOperationsBenchmark.Role.http2.rawValue, way.rawValue] + arguments)
    guard let numbers = child?.numbers(), numbers.count == 3, numbers[2] == 0 else {
        print("\(way) failed with \(streams) streams")
        return nil
    }
    return numbers[1] / Double(count)
}

/// A client that sends requests with HTTP/2 over TLS, and prints the seconds, the microseconds of processor time and
/// the failures.
struct HTTP2Client {
    private let way: HTTP2Way
    private let url: URL
    private let count: Int
    private let streams: Int
    private let transport: any NetworkSession

    init?(_ arguments: [String]) {
        guard arguments.count == 5, let way = HTTP2Way(rawValue: arguments[0]), let url = URL(string: arguments[1]),
            let count = Int(arguments[2]), let streams = Int(arguments[3])
        else { return nil }
        (self.way, self.url, self.count, self.streams) = (way, url, count, streams)
        #if OPERATIONKIT_LIBCURL
            var configuration = CurlSession.Configuration()
            configuration.proxy = .none
            configuration.tls.trust = .file(URL(fileURLWithPath: arguments[4]))
            transport = CurlSession(configuration: configuration)
            DefaultNetworkSession.standard.session = ExchangeSession(over: transport)
        #else
            return nil
        #endif
    }

    func run() async {
        // The first requests establish the connection, and exclude the cost of first uses.
        let early = await send(max(count / 10, 100))
        let start = DispatchTime.now().uptimeNanoseconds
        let before = ProcessTime.microseconds
        let failed = await send(count)
        let processor = ProcessTime.microseconds - before
        let seconds = Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
        print("\(seconds) \(processor) \(early + failed)")
    }

    /// Sends requests and returns the number of failures.
    private func send(_ count: Int) async -> Int {
        switch way {
        case .operation:
            return await sendConcurrently(count, inFlight: streams) {
                try await NetworkDataOperation(url: url) { data, _ in data.count }.run() == 100
            }
        case .peer, .task:
            guard let request = try? NetworkRequest(url: url) else { return count }
            let rest = Countdown(count)
            for _ in 0..<streams { HTTP2Receiver.begin(request, transport, rest) }
            return await onOwnThread { rest.wait() }
        }
    }
}

/// A receiver that stores the body of a response and begins the next request.
private final class HTTP2Receiver: NetworkReceiver {
    private let request: NetworkRequest
    private let session: any NetworkSession
    private let rest: Countdown
    // Sendable: the properties are used only in the calls of one task, which are consecutive.
    private nonisolated(unsafe) var data = Data()
    private nonisolated(unsafe) var isGood = false

    init(_ request: NetworkRequest, _ session: any NetworkSession, _ rest: Countdown) {
        (self.request, self.session, self.rest) = (request, session, rest)
    }

    static func begin(_ request: NetworkRequest, _ session: any NetworkSession, _ rest: Countdown) {
        guard rest.takeOne() else { return }
        session.makeTask(with: request, receiver: HTTP2Receiver(request, session, rest)).resume()
    }

    func task(_ task: any NetworkTask, didReceive head: ResponseHead) {
        isGood = head.status == 200 && head.version == .http2
    }

    func task(_ task: any NetworkTask, didReceive bytes: UnsafeRawBufferPointer) { data.append(contentsOf: bytes) }

    func task(_ task: any NetworkTask, didEndWith error: NetworkError?) {
        rest.end(isGood: error == nil && isGood && data.count == 100)
        Self.begin(request, session, rest)
    }
}
