// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

/// Takes in the body of one response: the side without types.
///
/// It cannot be subclassed directly; subclass ``ResponseCollector``.
open class AnyResponseCollector: @unchecked Sendable {
    // Sendable: the calls for one response never overlap, whichever thread they come from; the last is `finish`.

    init() {}

    /// Whether it has nothing if no byte was received in this transfer.
    var mayBeEmpty: Bool { true }

    /// The first bytes of what was collected, if it is kept in memory; asked for after all bytes.
    func prefix(_ count: Int) -> Data? { nil }

    /// Takes the next bytes, which are there only for the length of the call.
    ///
    /// Called on the session's thread: it must not block. What needs time calls `flow.hold()`, and `proceed()` later.
    open func receive(_ bytes: UnsafeRawBufferPointer, flow: any NetworkTask) throws {}
}

/// Takes in the body of one response and makes what a ``NetworkOperation`` evaluates.
///
/// There is one for `Data` and one for temporary files (`URL`). Make one of your own for a `TaskResult` of your own, and
/// return it from `makeCollector(for:)`.
open class ResponseCollector<TaskResult>: AnyResponseCollector, @unchecked Sendable {
    // Sendable: it adds no state.

    /// Makes a collector for one response.
    public override init() {
        super.init()
    }

    /// Gives what was collected; called once, after all bytes, on a thread that may block.
    open func finish() throws -> TaskResult {
        fatalError("\(type(of: self)) must override finish(), and must not call super.finish().")
    }
}

/// Keeps a body in memory, up to a bound.
final class DataCollector: ResponseCollector<Data>, @unchecked Sendable {
    // Sendable: as its superclass.

    private let limit: Int
    private var data = Data()

    init(limit: Int, expected: Int64?) {
        self.limit = limit
        super.init()
        // Nobody gets memory by announcing that he will send much.
        if let expected, expected > 0 { data.reserveCapacity(max(Int(min(expected, Int64(limit), 1 << 20)), 0)) }
    }

    override func receive(_ bytes: UnsafeRawBufferPointer, flow: any NetworkTask) throws {
        guard bytes.count <= limit - data.count else {
            throw NetworkError(
                code: .bodyTooLarge, phase: .receiving,
                message: "The body has more than the \(limit) bytes that may be kept in memory. "
                    + "Download it to a file, or raise maximumBytesInMemory.")
        }
        data.append(contentsOf: bytes)
    }

    override func prefix(_ count: Int) -> Data? { data.isEmpty ? nil : Data(data.prefix(max(count, 0))) }

    override func finish() -> Data { data }
}

/// Keeps the body of an answer that is an error, or its beginning, and has it cut off if it goes on for long.
///
/// It may be looked at while it is filled: a rest that takes too long is not waited for.
final class ErrorBodyCollector: AnyResponseCollector, @unchecked Sendable {
    // Sendable: what changes is behind its lock.

    /// How many bytes are read before the transfer is cut off.
    static let patience = 1 << 20

    private let limit: Int
    private let taken = Locked((count: 0, body: Data()))

    init(limit: Int) {
        self.limit = max(limit, 0)
        super.init()
    }

    var body: Data { taken.withLock { $0.body } }

    override func prefix(_ count: Int) -> Data? {
        let body = body
        return body.isEmpty ? nil : Data(body.prefix(max(count, 0)))
    }

    override func receive(_ bytes: UnsafeRawBufferPointer, flow: any NetworkTask) throws {
        let count = taken.withLock { taken in
            if taken.body.count < limit { taken.body.append(contentsOf: bytes.prefix(limit - taken.body.count)) }
            taken.count += bytes.count
            return taken.count
        }
        if count > Self.patience { throw EnoughOfBody() }
    }
}

/// No more bytes are needed: the transfer is to be cut off and to count as complete.
struct EnoughOfBody: Error {}

/// Writes a body to a temporary file, which goes with the collector unless it is handed over.
///
/// It is for subclasses of ``NetworkOperation`` that make a file their task's result. A ``NetworkDownloadOperation`` has
/// its file written by a `Download`.
///
/// It is written on a queue of its own; the transfer is held while more than 1 MiB waits for that.
package final class TemporaryFileCollector: ResponseCollector<URL>, TemporaryFileHolder, @unchecked Sendable {
    // Sendable: as its superclass; what the queue shares with the session's thread is behind a lock.

    private struct State {
        var pending = 0
        var isHolding = false
        var failure: NetworkError?
    }

    private static let bound = 1 << 20

    let temporaryFile: TemporaryFile?
    private let url: URL
    private let file: FileHandle
    private let queue = DispatchQueue(label: "OperationKit.TemporaryFileCollector", autoreleaseFrequency: .workItem)
    private let state = Locked(State())
    private var isFinished = false

    convenience init(in folder: URL) throws(NetworkError) {
        let (made, descriptor) = try TemporaryFile.make(in: folder)
        self.init(made, descriptor)
    }

    /// One that writes to a file that is open, and stays.
    package convenience init(writingTo descriptor: Int32, at url: URL) {
        let file = TemporaryFile(url)
        file.handOver()
        self.init(file, descriptor)
    }

    private init(_ made: TemporaryFile, _ descriptor: Int32) {
        (temporaryFile, url) = (made, made.url)
        file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        super.init()
    }

    package override func receive(_ bytes: UnsafeRawBufferPointer, flow: any NetworkTask) throws {
        let data = Data(bytes)
        let isTooMuch = try state.withLock { state in
            if let failure = state.failure { throw failure }
            return state.pending + data.count > Self.bound
        }
        // First the brake, then the note of it, then what will release it: whoever sees the note finds the brake set.
        if isTooMuch { flow.hold() }
        state.withLock { state in
            state.pending += data.count
            if isTooMuch { state.isHolding = true }
        }
        queue.async { [self] in write(data, flow) }
    }

    private func write(_ data: Data, _ flow: any NetworkTask) {
        let failure = data.withUnsafeBytes { write($0) }
        let proceeds = state.withLock { state in
            state.failure = state.failure ?? failure
            state.pending -= data.count
            guard state.isHolding, state.pending <= Self.bound / 2 else { return false }
            state.isHolding = false
            return true
        }
        if proceeds { flow.proceed() }
    }

    private func write(_ bytes: UnsafeRawBufferPointer) -> NetworkError? {
        var rest = bytes
        while !rest.isEmpty {
            let count = Foundation.write(file.fileDescriptor, rest.baseAddress, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return Self.unwritable(errno) }
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
        }
        return nil
    }

    private static func unwritable(_ number: Int32) -> NetworkError {
        let isFull = number == ENOSPC || number == EDQUOT
        return NetworkError(
            code: isFull ? .diskFull : .fileUnwritable, phase: .saving,
            message: isFull
                ? "The disk has no room for the body. Free some."
                : "The body could not be written to a temporary file.",
            underlying: .init(domain: "errno", number: Int(number), text: String(cString: strerror(number))))
    }

    package override func finish() throws -> URL {
        if isFinished { return url }
        isFinished = true
        try queue.sync {
            if let failure = state.withLock({ $0.failure }) { throw failure }
            do { try file.close() } catch { throw Self.unwritable(errno) }
        }
        return url
    }
}

/// A file that goes with the object that stands for it, unless it is handed over.
final class TemporaryFile: Sendable {
    let url: URL
    private let isOurs = Locked(true)

    /// Takes over a file that is there.
    init(_ url: URL) {
        self.url = url
    }

    /// Makes one that nobody else can read or write, opened to be written.
    static func make(in folder: URL) throws(NetworkError) -> (file: TemporaryFile, descriptor: Int32) {
        let url = folder.appendingPathComponent("OperationKit-\(UUID().uuidString).download", isDirectory: false)
        let descriptor = open(url.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            let number = errno
            if let error = DescriptorShortage.error(number, opening: url.path, phase: .receiving) { throw error }
            throw NetworkError(
                code: .fileUnwritable, phase: .receiving,
                message: "No temporary file could be made in \(folder.path). Check that it exists and is writable.",
                underlying: .init(domain: "errno", number: Int(number), text: String(cString: strerror(number))))
        }
        return (TemporaryFile(url), descriptor)
    }

    /// Makes an empty one.
    static func empty(in folder: URL) throws(NetworkError) -> TemporaryFile {
        let (file, descriptor) = try make(in: folder)
        close(descriptor)
        return file
    }

    deinit {
        remove()
    }

    /// Whether that is the file's URL.
    func isNamed(by result: Any) -> Bool { result as? URL == url }

    /// Leaves the file to the user.
    func handOver() { isOurs.withLock { $0 = false } }

    /// Removes it, unless it was handed over.
    func remove() {
        if isOurs.withLock({ exchange(&$0, with: false) }) { unlink(url.path) }
    }
}

/// A collector whose result is a temporary file.
protocol TemporaryFileHolder: AnyResponseCollector {
    var temporaryFile: TemporaryFile? { get }
}
