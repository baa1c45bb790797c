// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Calls a closure at each step of an operation, so that a test can cancel it there.
final class Stepper: NetworkDownloadOperation<Int>, @unchecked Sendable {
    enum Step: CaseIterable, Sendable { case prepare, adapt, create, created, begins, head, evaluate, moved }

    private let folder: URL
    private let step: @Sendable (Step, Stepper) -> Void

    init(_ bench: OperationBench, in folder: URL, step: @escaping @Sendable (Step, Stepper) -> Void) {
        self.folder = folder
        self.step = step
        super.init(url: bench.server.url("/"), urlSession: bench.session)
        callbackQueue = bench.callbacks
        bench.census.track(self)
    }

    override var temporaryFolder: URL { folder }

    override func prepareRequest(_ request: URLRequest) -> URLRequest {
        step(.prepare, self)
        return request
    }

    override func adapt(_ request: NetworkRequest) async -> NetworkRequest {
        step(.adapt, self)
        return request
    }

    override func createTask(
        with request: NetworkRequest, using session: any NetworkSession
    ) throws -> any NetworkTask {
        step(.create, self)
        let task = try super.createTask(with: request, using: session)
        step(.created, self)
        return task
    }

    override func makeCollector(for head: ResponseHead) throws -> ResponseCollector<URL> {
        step(.head, self)
        return try super.makeCollector(for: head)
    }

    override func evaluate(result: URL, response: HTTPURLResponse) throws -> Int {
        step(.evaluate, self)
        let place = result.appendingPathExtension("moved")
        try FileManager.default.moveItem(at: result, to: place)
        step(.moved, self)
        try FileManager.default.removeItem(at: place)
        return 1
    }
}

/// The same for a result in memory.
final class Taker: NetworkDataOperation<Int>, @unchecked Sendable {
    enum Step: CaseIterable, Sendable { case head, bytes, decode }

    private let step: @Sendable (Step, Taker) -> Void

    init(_ bench: OperationBench, step: @escaping @Sendable (Step, Taker) -> Void) {
        self.step = step
        super.init(url: bench.server.url("/"), urlSession: bench.session)
        callbackQueue = bench.callbacks
        bench.census.track(self)
    }

    override func makeCollector(for head: ResponseHead) throws -> ResponseCollector<Data> {
        step(.head, self)
        return Bytes { [weak self] in
            if let self { step(.bytes, self) }
        }
    }

    override func evaluate(result: Data, response: HTTPURLResponse) throws -> Int {
        let decoder = JSONDecoder()
        decoder.userInfo[Number.key] = Number.Hook { [weak self] in
            if let self { step(.decode, self) }
        }
        return try decoder.decode([Number].self, from: result).count
    }

    private final class Bytes: ResponseCollector<Data>, @unchecked Sendable {
        private let step: @Sendable () -> Void
        private var data = Data()

        init(_ step: @escaping @Sendable () -> Void) {
            self.step = step
            super.init()
        }

        override func receive(_ bytes: UnsafeRawBufferPointer, flow: any NetworkTask) {
            data += bytes
            step()
        }

        override func finish() -> Data { data }
    }

    /// Calls a closure while it is decoded.
    private struct Number: Decodable {
        struct Hook: Sendable { let call: @Sendable () -> Void }

        static let key: CodingUserInfoKey = {
            guard let key = CodingUserInfoKey(rawValue: "hook") else { preconditionFailure("No key can be made.") }
            return key
        }()

        init(from decoder: any Decoder) throws {
            _ = try decoder.singleValueContainer().decode(Int.self)
            (decoder.userInfo[Self.key] as? Hook)?.call()
        }
    }
}

/// A body without end.
final class Endless: BodyProducer {
    func produce(into buffer: UnsafeMutableRawBufferPointer, waker: BodyWaker) -> BodyPortion {
        buffer.initializeMemory(as: UInt8.self, repeating: 7)
        return .bytes(buffer.count)
    }
}
