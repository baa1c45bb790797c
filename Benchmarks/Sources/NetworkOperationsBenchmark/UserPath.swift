// Part of OperationKit, released under the MIT license.
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
    /// A bare task that a Swift task awaits, which shows how much of the other paths is waiting.
    case awaitedTask
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
    /// An operation in an `OperationQueue`.
    case queue
    /// `GroupOperation.map`.
    case map

    /// The bare task that does the same work.
    var peer: UserPath { self == .post ? .postTask : .task }

    /// The number of requests that are in flight at the same time.
    var inFlight: Int { self == .map ? 200 : 16 }

    var title: String {
        switch self {
        case .task, .postTask: "a bare task"
        case .awaitedTask: "an awaited bare task"
        case .run: "base.get().run()"
        case .runClosure: "NetworkDataOperation { }.run()"
        case .policies: "run() with idle policies"
        case .hooks: "run() of a subclass"
        case .post: "POST of 1 KiB, run()"
        case .callback: "handlers on a serial queue"
        case .manager: "in a QueueManager"
        case .queue: "in an OperationQueue"
        case .map: "GroupOperation.map, 200 in flight"
        }
    }

    var target: Double? {
        switch self {
        case .run, .manager: 1.15
        case .policies: 1.25
        case .hooks, .map: 1.3
        case .queue: 1.4
        default: nil
        }
    }

    /// The number of allocations that a request may make, or nil if the number is not checked.
    ///
    /// The number includes the allocations of libcurl and of the JSON decoder.
    var allocationLimit: Double? {
        switch self {
        case .task: 107
        case .runClosure: 134
        case .run: 121
        case .policies: 126
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
    var costs: [UserPath: [(ours: Cost, peer: Cost)]] = [:]
    let paths = UserPath.allCases.filter { $0 != .task && $0 != .postTask }
    for _ in 0..<(scale.isSmoke ? 1 : 7) {
        for path in paths {
            // The peer runs next to each path, so that both find the machine in the same state.
            guard let peer = measure(path.peer, path.inFlight, server, count),
                let ours = measure(path, path.inFlight, server, count)
            else { return [] }
            costs[path, default: []].append((ours, peer))
        }
    }
    let times = paths.compactMap { path -> Figure? in
        guard let rounds = costs[path] else { return nil }
        let pair = Pair(ours: rounds.map(\.ours.microseconds), peer: rounds.map(\.peer.microseconds))
        let target = scale.isSmoke ? nil : path.target
        return .ratio(
            "CPU per request, \(path.title), to a task", unit: "µs", pair, target: target.map { .atMost($0) } ?? .none)
    }
    guard allocation_counter_is_available() == 1 else { return times }
    costs[.task] = costs[.run]?.map { ($0.peer, $0.peer) }
    return times
        + UserPath.allCases.compactMap { path in
            guard let limit = path.allocationLimit, let rounds = costs[path] else { return nil }
            return .plain(
                "allocations per request, \(path.title)", unit: "", median(rounds.map(\.ours.allocations)),
                target: .atMost(limit))
        }
}

/// The cost of a request.
private struct Cost {
    var microseconds: Double
    var allocations: Double
}

private func measure(_ path: UserPath, _ inFlight: Int, _ server: LocalNginx, _ count: Int) -> Cost? {
    let role = NetworkOperationsBenchmark.Role.path.rawValue
    let child = ChildProcess([role, path.rawValue, server.url("small.json"), "\(count)", "\(inFlight)"])
    guard let numbers = child?.numbers(), numbers.count == 4, numbers[2] == 0 else {
        print("\(path) failed")
        return nil
    }
    return Cost(microseconds: numbers[1] / Double(count), allocations: numbers[3])
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
        print("\(seconds) \(processor) \(failed) \(await allocations(max(count / 10, 1_000)))")
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
        case .task, .postTask: return await onOwnThread { sendByTasks(count) }
        case .awaitedTask: return await sendConcurrently(count, inFlight: inFlight, awaitTask)
        case .callback: return await onOwnThread { sendWithHandlers(count) }
        case .manager:
            let queue = QueueManager(width: inFlight)
            return await onOwnThread {
                sendInWaves(count) { operations in
                    try? queue.add(operations)
                    try? queue.waitUntilAllFinished()
                }
            }
        case .queue:
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = inFlight
            return await onOwnThread {
                sendInWaves(count) { queue.addOperations($0, waitUntilFinished: true) }
            }
        case .map: return await sendInGroup(count)
        case .run, .policies: return await sendAwaited(count) { base.get("small.json", as: Album.self) }
        case .runClosure:
            return await sendAwaited(count) { NetworkDataOperation(url: url) { data, _ in try Album(data) } }
        case .hooks: return await sendAwaited(count) { HookedAlbumOperation(url: url) }
        case .post:
            let endpoint = Endpoint<Album>.post("echo", body: .data(body))
            return await sendAwaited(count) { base.operation(for: endpoint) }
        }
    }

    private func sendAwaited(_ count: Int, _ make: @escaping @Sendable () -> NetworkDataOperation<Album>) async -> Int {
        await sendConcurrently(count, inFlight: inFlight) { try await make().run().year == 1959 }
    }

    /// Sends a bare task, waits for its album, and returns whether the album is right.
    private func awaitTask() async -> Bool {
        let session = DefaultNetworkSession.platformTransport
        let album = await withCheckedContinuation { continuation in
            session.makeTask(with: request, receiver: AlbumReceiver { continuation.resume(returning: $0) }).resume()
        }
        return album?.year == 1959
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

    private func sendInWaves(_ count: Int, _ run: ([NetworkDataOperation<Album>]) -> Void) -> Int {
        var (failed, made) = (0, 0)
        while made < count {
            let operations = (made..<min(made + 1_000, count)).map { _ in base.get("small.json", as: Album.self) }
            run(operations)
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
