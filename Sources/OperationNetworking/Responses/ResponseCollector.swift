// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// A collector, which receives the body of a response, regardless of the value that it creates.
package protocol AnyResponseCollector: AnyObject, Sendable {
    /// Whether the collector has no content if this transfer received no bytes.
    var mayBeEmpty: Bool { get }

    /// Returns the first collected bytes if they are in memory, after all bytes were received.
    func prefix(_ count: Int) -> Data?

    /// Receives the next bytes of the response body. See ``ResponseCollector/receive(_:flow:)``.
    func receive(_ bytes: UnsafeRawBufferPointer, flow: any NetworkTask) throws
}

/// A collector that receives the body of a response and creates the value that a ``NetworkOperation`` evaluates.
///
/// The package contains collectors for `Data` and for temporary files, which `URL` values represent. If your operation
/// has another `TaskResult`, create a subclass and return an instance from `makeCollector(for:)`.
open class ResponseCollector<TaskResult>: AnyResponseCollector, @unchecked Sendable {
    // Sendable: the calls for one response never overlap, whichever thread they come from; the last is `finish`.

    /// Creates a collector for the body of one response.
    public init() {}

    package var mayBeEmpty: Bool { true }

    package func prefix(_ count: Int) -> Data? { nil }

    /// The temporary file that is the result of the collector, if there is one.
    var temporaryFile: SpooledFile? { nil }

    /// Receives the next bytes of the response body.
    ///
    /// The session calls this method on one of its threads, so the method must not block. To process the bytes later,
    /// copy the bytes and call `hold()` on the task. When the collector can receive more bytes, call `proceed()`.
    ///
    /// - Parameters:
    ///   - bytes: The next bytes of the body, which are valid only until the method returns.
    ///   - flow: The task that receives the response.
    /// - Throws: Any error. The operation then cancels the transfer, and the attempt fails.
    open func receive(_ bytes: UnsafeRawBufferPointer, flow: any NetworkTask) throws {}

    /// Returns the value that the collector created from the body.
    ///
    /// Override this method without calling `super.finish()`. The operation calls the method once, after the collector
    /// has received all bytes. The method may block its thread.
    ///
    /// - Throws: Any error. The attempt then fails.
    open func finish() throws -> TaskResult {
        fatalError("\(type(of: self)) must override finish(), and must not call super.finish().")
    }
}

/// A collector that keeps a body in memory, up to a maximum size.
final class DataCollector: ResponseCollector<Data>, @unchecked Sendable {
    // Sendable: as its superclass.

    private let limit: Int
    private var data = Data()

    init(limit: Int, expected: Int64?) {
        self.limit = limit
        super.init()
        // A server must not cause a large allocation only by announcing a large body.
        if let expected, expected > 0 { data.reserveCapacity(max(Int(min(expected, Int64(limit), 1 << 20)), 0)) }
    }

    override func receive(_ bytes: UnsafeRawBufferPointer, flow: any NetworkTask) throws {
        guard bytes.count <= limit - data.count else {
            throw NetworkError(
                code: .bodyTooLarge, phase: .receiving,
                message: "The body is larger than the \(limit) bytes that may be kept in memory. "
                    + "Download it to a file, or raise maximumBytesInMemory.")
        }
        data.append(contentsOf: bytes)
    }

    override func prefix(_ count: Int) -> Data? { data.isEmpty ? nil : Data(data.prefix(max(count, 0))) }

    override func finish() -> Data { data }
}

/// A collector that keeps the beginning of the body of an error response, and ends the transfer if the body is long.
///
/// The body can be read while it is received, because the operation does not wait for a slow body.
final class ErrorBodyCollector: AnyResponseCollector {
    /// The number of bytes to read before the transfer is ended.
    static let readLimit = 1 << 20

    private let limit: Int
    private let taken = Locked((count: 0, body: Data()))

    init(limit: Int) {
        self.limit = max(limit, 0)
    }

    var body: Data { taken.withLock { $0.body } }

    let mayBeEmpty = true

    func prefix(_ count: Int) -> Data? {
        let body = body
        return body.isEmpty ? nil : Data(body.prefix(max(count, 0)))
    }

    func receive(_ bytes: UnsafeRawBufferPointer, flow: any NetworkTask) throws {
        let count = taken.withLock { taken in
            if taken.body.count < limit { taken.body.append(contentsOf: bytes.prefix(limit - taken.body.count)) }
            taken.count += bytes.count
            return taken.count
        }
        if count > Self.readLimit { throw ReadLimitReached() }
    }
}

/// An error that ends the transfer and marks it as complete, because no more bytes are needed.
struct ReadLimitReached: Error {}

/// A collector that writes a body to a temporary file, which is removed with the collector unless it is handed over.
///
/// The collector is for subclasses of ``NetworkOperation`` whose task result is a file. In a
/// ``NetworkDownloadOperation``, a `Download` writes the file.
///
/// The file is written on the collector's own queue. The transfer is held while more than 1 MiB waits to be written.
package final class TemporaryFileCollector: ResponseCollector<URL>, @unchecked Sendable {
    // Sendable: as its superclass; what the queue shares with the session's thread is behind a lock.

    private let made: SpooledFile
    private let file: OpenFile
    private let queue = DispatchQueue(label: "OperationKit.TemporaryFileCollector", autoreleaseFrequency: .workItem)
    private let state = Locked((window: FlowWindow(bound: 1 << 20), failure: NetworkError?.none))
    private var isFinished = false

    convenience init(in folder: URL) throws(NetworkError) {
        let (made, file) = try SpooledFile.make(in: folder)
        self.init(made, file)
    }

    /// Creates a collector that writes to an open file, which remains.
    package convenience init(writingTo descriptor: Int32, at url: URL) {
        let file = SpooledFile(url)
        file.handOver()
        self.init(file, OpenFile(descriptor))
    }

    private init(_ made: SpooledFile, _ file: OpenFile) {
        (self.made, self.file) = (made, file)
        super.init()
    }

    override var temporaryFile: SpooledFile? { made }

    package override func receive(_ bytes: UnsafeRawBufferPointer, flow: any NetworkTask) throws {
        let data = Data(bytes)
        let isFull = try state.withLock { state in
            if let failure = state.failure { throw failure }
            return state.window.isFull(with: data.count)
        }
        if isFull { flow.hold() }
        state.withLock { $0.window.add(data.count, isHeld: isFull) }
        queue.async { [self] in write(data, flow) }
    }

    private func write(_ data: Data, _ flow: any NetworkTask) {
        let failure = data.withUnsafeBytes { write($0) }
        let proceeds = state.withLock { state in
            state.failure = state.failure ?? failure
            return state.window.remove(data.count)
        }
        if proceeds { flow.proceed() }
    }

    private func write(_ bytes: UnsafeRawBufferPointer) -> NetworkError? {
        guard case .failure(let error) = FileSystem().writeAll(file, bytes) else { return nil }
        return Self.unwritable(error.number)
    }

    private static func unwritable(_ number: Int32) -> NetworkError {
        let isFull = number == ENOSPC || number == EDQUOT
        return NetworkError(
            code: isFull ? .diskFull : .fileUnwritable, phase: .saving,
            message: isFull
                ? "The disk has no space left for the body. Free some space."
                : "The body could not be written to a temporary file.",
            underlying: .init(domain: "errno", number: Int(number), text: String(cString: strerror(number))))
    }

    package override func finish() throws -> URL {
        if isFinished { return made.url }
        isFinished = true
        try queue.sync {
            if let failure = state.withLock({ $0.failure }) { throw failure }
            if case .failure(let error) = FileSystem().close(file) { throw Self.unwritable(error.number) }
        }
        return made.url
    }
}

extension SpooledFile {
    /// Creates a file that only this user can read and write, and opens it for writing.
    static func make(in folder: URL) throws(NetworkError) -> (SpooledFile, OpenFile) {
        let url = folder.appendingPathComponent("OperationKit-\(UUID().uuidString).download", isDirectory: false)
        switch FileSystem().createFile(FolderEntry(PathBytes(url.path)), permissions: 0o600) {
        case .success(let file): return (SpooledFile(url), file)
        case .failure(let error):
            let number = error.number
            if let error = DescriptorShortage.error(number, opening: url.path, phase: .receiving) { throw error }
            throw NetworkError(
                code: .fileUnwritable, phase: .receiving,
                message: "No temporary file could be created in \(folder.path). Check that the folder exists and is "
                    + "writable.",
                underlying: .init(domain: "errno", number: Int(number), text: String(cString: strerror(number))))
        }
    }

    /// Returns whether a result is the URL of the file.
    func isNamed(by result: Any) -> Bool { result as? URL == url }
}
