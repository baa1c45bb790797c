// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import Testing

/// A session and a server to which it sends requests.
protocol ClientBench: Sendable {
    var session: any NetworkSession { get }
    func url(_ target: String) throws -> URL
}

extension ClientBench {
    func request(
        _ method: String = "GET", _ target: String = "/", _ headers: HeaderFields = [:], body: RequestBody = .none,
        _ change: (inout TransferOptions) -> Void = { _ in }
    ) throws -> NetworkRequest {
        var options = TransferOptions()
        // With these limits, a case fails instead of hanging.
        options.timeouts = TransferTimeouts(connect: .seconds(60), firstByte: .seconds(60), idle: .seconds(60))
        change(&options)
        return try NetworkRequest(method, url: url(target), headers: headers, body: body, options: options)
    }

    /// Creates and starts a task.
    func start(
        _ request: NetworkRequest,
        _ react: @escaping @Sendable (RecordingReceiver.Event, any NetworkTask) -> Void = { _, _ in }
    ) -> RunningTask {
        let receiver = RecordingReceiver(react)
        let task = session.makeTask(with: request, receiver: receiver)
        task.resume()
        return RunningTask(task: task, receiver: receiver)
    }

    /// Starts a task and waits for its end, which must come once and follow the contract.
    func run(
        _ request: NetworkRequest, location: SourceLocation = #_sourceLocation,
        _ react: @escaping @Sendable (RecordingReceiver.Event, any NetworkTask) -> Void = { _, _ in }
    ) async -> RecordingReceiver.Record {
        await start(request, react).end(location)
    }

    /// Sends a GET request and waits for its end.
    func get(_ target: String = "/", location: SourceLocation = #_sourceLocation) async throws
        -> RecordingReceiver.Record
    {
        await run(try request("GET", target), location: location)
    }
}

extension NetworkSession {
    /// Makes and starts a task that sends a GET request.
    @discardableResult
    func begin(
        _ url: URL, options: TransferOptions = .standard, _ receiver: any NetworkReceiver
    ) throws -> any NetworkTask {
        let task = makeTask(with: try NetworkRequest(url: url, options: options), receiver: receiver)
        task.resume()
        return task
    }

    /// Sends a request and waits for its end.
    func run(
        _ url: URL, _ method: String = "GET", headers: HeaderFields = [:], body: RequestBody = .none,
        options: TransferOptions = .standard
    ) async throws -> RecordingReceiver.Record {
        let receiver = RecordingReceiver()
        let request = try NetworkRequest(method, url: url, headers: headers, body: body, options: options)
        makeTask(with: request, receiver: receiver).resume()
        return await receiver.end()
    }
}

/// A running task and its events.
struct RunningTask: Sendable {
    let task: any NetworkTask
    let receiver: RecordingReceiver

    @discardableResult
    func end(_ location: SourceLocation = #_sourceLocation) async -> RecordingReceiver.Record {
        let record = await receiver.end()
        #expect(record.ends == 1, sourceLocation: location)
        #expect(record.faults == [], sourceLocation: location)
        return record
    }
}
