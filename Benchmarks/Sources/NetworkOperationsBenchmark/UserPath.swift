// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import AllocationCounter
import BenchmarkSupport
import Dispatch
import Foundation
import NetworkBenchmarkSupport
import OperationCore
import OperationNetworking

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A way in which a user sends a request over the default session.
enum UserPath: String, CaseIterable {
    /// A bare task of the transport, with a receiver that collects and decodes the body.
    case task
    /// A bare task that sends a body of 1 KiB.
    case postTask
    /// `try await base.get("…", as: Album.self).run()`.
    case run
    /// `try await NetworkDataOperation(url:) { … }.run()`.
    case runClosure
    /// The same as `run`, with retry, an offline policy and a token that have nothing to do.
    case policies
    /// A subclass that overrides `prepareRequest` and `evaluate`, awaited with `run()`.
    case hooks
    /// The operation of an endpoint that sends a body of 1 KiB, awaited with `run()`.
    case post
    /// An operation with handlers on a serial queue.
    case callback
    /// An operation in a `QueueManager`.
    case manager
    /// `GroupOperation.map`.
    case map

    /// The bare task that does the same work.
    var peer: UserPath { self == .post ? .postTask : .task }

    /// The number of requests that are in flight at the same time.
    var inFlight: Int { self == .map ? 200 : 16 }

    var title: String {
        switch self {
        case .task, .postTask: "a bare task"
        case .run: "base.get().run()"
        case .runClosure: "NetworkDataOperation { }.run()"
        case .policies: "run() with idle policies"
        case .hooks: "run() of a subclass"
        case .post: "POST of 1 KiB, run()"
        case .callback: "handlers on a serial queue"
        case .manager: "in a QueueManager"
        case .map: "GroupOperation.map, 200 in flight"
        }
    }

    var target: Double? {
        switch self {
        case .run, .manager: 1.15
        case .policies: 1.25
        case .hooks, .map: 1.3
        default: nil
        }
    }
}

/// Requests as users send them over the default session, beside bare tasks with the same decoding.
func userPaths(_ scale: Scale) -> [Figure] {
    guard Preparation.run(), let server = LocalNginx(largeSize: 0) else {
        print("SKIPPED: there is no nginx, and it cannot be installed (see above).")
        return []
    }
    defer { server.stop() }
    let count = scale.isSmoke ? 1_000 : 20_000
    var ratios: [UserPath: [Pair]] = [:]
    let paths = UserPath.allCases.filter { $0 != .task && $0 != .postTask }
    for _ in 0..<(scale.isSmoke ? 1 : 7) {
        for path in paths {
            // The peer runs next to each path, so that both find the machine in the same state.
            guard let peer = measure(path.peer, path.inFlight, server, count),
                let ours = measure(path, path.inFlight, server, count)
            else { return [] }
            ratios[path, default: []].append(Pair(ours: ours, peer: peer, ratio: ours / peer))
        }
    }
    return paths.compactMap { path in
        guard let pairs = ratios[path] else { return nil }
        let pair = Pair(
            ours: median(pairs.map(\.ours)), peer: median(pairs.map(\.peer)), ratio: median(pairs.map(\.ratio)))
        let target = scale.isSmoke ? nil : path.target
        return .ratio(
            "CPU per request, \(path.title), to a task", unit: "µs", pair, target: target.map { .atMost($0) } ?? .none)
    }
}

/// Returns the microseconds of processor time for each request.
private func measure(_ path: UserPath, _ inFlight: Int, _ server: LocalNginx, _ count: Int) -> Double? {
    let role = NetworkOperationsBenchmark.Role.path.rawValue
    let child = ChildProcess([role, path.rawValue, server.url("small.json"), "\(count)", "\(inFlight)"])
    guard let numbers = child?.numbers(), numbers.count == 4, numbers[2] == 0 else {
        print("\(path) failed")
        return nil
    }
    return numbers[1] / Double(count)
}

/// Sends requests in one of the ways of a user, in a process of its own.
///
/// The client prints seconds, microseconds of processor time, the number of failures, and allocations for each request.
struct UserPathClient {
    private let path: UserPath
    private let url: URL
    private let request: NetworkRequest
    private let base: NetworkBase
    private let count: Int
    private let inFlight: Int
    private let body = Data(repeating: 0x78, count: 1_024)
    private let callbacks = DispatchQueue(label: "callbacks")

    init?(_ arguments: [String]) {
        guard arguments.count == 4, let path = UserPath(rawValue: arguments[0]), let url = URL(string: arguments[1]),
            let count = Int(arguments[2]), let inFlight = Int(arguments[3]),
            let request = try? NetworkRequest(url: url)
        else { return nil }
        (self.path, self.url, self.request, self.count, self.inFlight) = (path, url, request, count, inFlight)
        base = NetworkBase(url.deletingLastPathComponent()) { base in
            // The server sends no content type.
            base.headers = ["Accept": "*/*"]
            guard path == .policies else { return }
            base.retry = .standard
            base.offline = .standard
            base.authenticate(
                by: Authenticator("token") { token, request in
                    try request.with("Authorization", token)
                } refresh: { _ in
                    "token"
                })
        }
    }

    func run() async {
        // First uses are not what is measured.
        _ = await send(max(count / 10, 100))
        let start = DispatchTime.now().uptimeNanoseconds
        let before = ProcessTime.microseconds
        let failed = await send(count)
        let processor = ProcessTime.microseconds - before
        let seconds = Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
        print("\(seconds) \(processor) \(failed) \(await allocations(max(count / 10, 100)))")
    }

    /// Returns the number of allocations for each request, which are counted apart from the time because counting
    /// takes time.
    private func allocations(_ count: Int) async -> Double {
        let before = allocation_counter_blocks()
        allocation_counter_set_counting(1)
        _ = await send(count)
        allocation_counter_set_counting(0)
        return Double(allocation_counter_blocks() - before) / Double(count)
    }

    /// Sends requests, and returns the number of failures.
    private func send(_ count: Int) async -> Int {
        switch path {
        case .task, .postTask: return await offMainThread { sendByTasks(count) }
        case .callback: return await offMainThread { sendWithHandlers(count) }
        case .manager: return await offMainThread { sendInQueue(count) }
        case .map: return await sendInGroup(count)
        case .run, .policies: return await sendAwaited(count) { try await base.get("small.json", as: Album.self).run() }
        case .runClosure:
            return await sendAwaited(count) {
                try await NetworkDataOperation(url: url) { data, _ in try Album(data) }.run()
            }
        case .hooks: return await sendAwaited(count) { try await HookedAlbumOperation(url: url).run() }
        case .post:
            let endpoint = Endpoint<Album>.post("echo", body: .data(body))
            return await sendAwaited(count) { try await base.operation(for: endpoint).run() }
        }
    }

    /// Awaits requests in tasks, each of which sends the next request after the last one.
    private func sendAwaited(_ count: Int, _ send: @escaping @Sendable () async throws -> Album) async -> Int {
        let rest = Countdown(count)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<inFlight {
                group.addTask {
                    while rest.takeOne() {
                        let album = try? await send()
                        rest.end(isGood: album?.year == 1959)
                    }
                }
            }
        }
        return await offMainThread { rest.wait() }
    }

    private func sendByTasks(_ count: Int) -> Int {
        let rest = Countdown(count)
        let session = DefaultNetworkSession.platformTransport
        let request =
            path == .postTask
            ? try? NetworkRequest(
                "POST", url: url.deletingLastPathComponent().appending(path: "echo"), body: .data(body))
            : request
        guard let request else { return count }
        @Sendable func next() {
            guard rest.takeOne() else { return }
            let receiver = AlbumReceiver { album in
                rest.end(isGood: album?.year == 1959)
                next()
            }
            session.makeTask(with: request, receiver: receiver).resume()
        }
        for _ in 0..<inFlight { next() }
        return rest.wait()
    }

    private func sendWithHandlers(_ count: Int) -> Int {
        let rest = Countdown(count)
        @Sendable func next() {
            guard rest.takeOne() else { return }
            let operation = base.get("small.json", as: Album.self)
            operation.callbackQueue = callbacks
            operation.successHandler = { album in
                rest.end(isGood: album.year == 1959)
                next()
            }
            operation.failureHandler = { _ in
                rest.end(isGood: false)
                next()
            }
            operation.startAndKeepAlive()
        }
        for _ in 0..<inFlight { next() }
        return rest.wait()
    }

    private func sendInQueue(_ count: Int) -> Int {
        let queue = QueueManager(width: inFlight)
        var (failed, made) = (0, 0)
        while made < count {
            let operations = (made..<min(made + 1_000, count)).map { _ in base.get("small.json", as: Album.self) }
            try? queue.add(operations)
            try? queue.waitUntilAllFinished()
            failed += operations.count { $0.outcome?.result?.year != 1959 }
            made += operations.count
        }
        return failed
    }

    private func sendInGroup(_ count: Int) async -> Int {
        let group = GroupOperation.map(0..<count, width: inFlight) { _ in base.get("small.json", as: Album.self) }
        guard let albums = try? await group.run() else { return count }
        return count - albums.count { $0.year == 1959 }
    }

    /// Runs work that blocks on a thread of its own, because the threads of Swift's tasks must not block.
    private func offMainThread(_ work: @escaping @Sendable () -> Int) async -> Int {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: work()) }
        }
    }
}

private final class HookedAlbumOperation: NetworkDataOperation<Album>, @unchecked Sendable {
    // Sendable: it has no state.

    override func prepareRequest(_ request: URLRequest) throws -> URLRequest {
        var request = request
        request.setValue("benchmark", forHTTPHeaderField: "X-Client")
        return request
    }

    override func evaluate(result: Data, response: HTTPURLResponse) throws -> Album { try Album(result) }
}
