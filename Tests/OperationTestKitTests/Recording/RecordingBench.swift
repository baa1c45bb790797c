// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Records one exchange with a stub session and plays it.
struct RecordingBench {
    let session = StubSession()
    let url: URL

    init() throws { url = try #require(URL(string: "http://example.com/x")) }

    /// The result of an operation: the response, or the error.
    struct End: Equatable {
        var type: String?
        var body: Data?
        var error: NetworkError.Code?
    }

    func operation(_ session: any NetworkSession, _ body: RequestBody = .none) -> NetworkUploadOperation<End> {
        NetworkUploadOperation(url: url, method: "PUT", body: body, urlSession: session) { data, response in
            End(type: response.value(forHTTPHeaderField: "Content-Type"), body: data)
        }
    }

    func end(_ session: any NetworkSession, _ body: RequestBody = .none) async -> End {
        let operation = operation(session, body)
        operation.start()
        let outcome = await operation.finalOutcome
        return outcome.result ?? End(error: outcome.error?.code)
    }

    /// Returns the recording of one request that got the given response.
    func recorded(
        _ answer: StubAnswer, _ body: RequestBody = .none, redaction: LogRedaction = .secrets
    ) async throws -> SessionRecording {
        session.route(nil, "*") { _ in answer }
        let recorder = RecordingSession(over: session, redaction: redaction)
        _ = await end(recorder, body)
        await recorder.settled()
        return try SessionRecording(try recorder.recording.data())
    }
}

extension SessionRecording {
    /// The file as text.
    var file: String { get throws { String(decoding: try data(), as: UTF8.self) } }
}

/// A session that responds before it has read the whole body of a request.
final class HastySession: NetworkSession {
    /// The number of portions of the body that it reads, or `nil` for all.
    private let portions: Locked<[Int?]>

    init(readingPortions portions: [Int?]) { self.portions = Locked(portions) }

    func makeTask(with request: NetworkRequest, receiver: any NetworkReceiver) -> any NetworkTask {
        let portions = portions.withLock { portions -> Int? in portions.isEmpty ? nil : portions.removeFirst() }
        return HastyTask(request, receiver, portions)
    }
}

/// Reads a number of portions, and responds with 413, or with 200 at the end of the body.
private final class HastyTask: NetworkTask {
    private let request: NetworkRequest
    private let receiver: any NetworkReceiver
    private let portions: Int?

    init(_ request: NetworkRequest, _ receiver: any NetworkReceiver, _ portions: Int?) {
        (self.request, self.receiver, self.portions) = (request, receiver, portions)
    }

    func resume() {
        DispatchQueue.global().async { [self] in
            guard case .stream(let makeProducer) = request.body.source, let producer = try? makeProducer() else {
                return
            }
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            var (count, isAtEnd) = (0, false)
            while !isAtEnd, count < portions ?? .max {
                let portion = buffer.withUnsafeMutableBytes { try? producer.produce(into: $0, waker: BodyWaker {}) }
                isAtEnd = portion == .end || portion == nil
                count += 1
            }
            receiver.task(self, didReceive: ResponseHead(url: request.url, status: isAtEnd ? 200 : 413))
            receiver.task(self, didEndWith: nil)
        }
    }

    func suspend() {}
    func cancel() {}
    func hold() {}
    func proceed() {}
}

/// Produces its pieces one at a time.
final class PiecesProducer: BodyProducer {
    private let pieces: Locked<ArraySlice<Data>>

    init(_ pieces: [Data]) { self.pieces = Locked(pieces[...]) }

    func produce(into buffer: UnsafeMutableRawBufferPointer, waker: BodyWaker) throws -> BodyPortion {
        guard let piece = pieces.withLock({ $0.popFirst() }) else { return .end }
        buffer.copyBytes(from: piece)
        return .bytes(piece.count)
    }
}
