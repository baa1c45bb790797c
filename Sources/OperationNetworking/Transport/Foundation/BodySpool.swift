// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore

/// Writes a request's body to a temporary file, at the pace at which it is made.
final class BodySpool: Sendable {
    private let body: RequestBody
    private let folder: URL
    private let completion: @Sendable (Result<SpooledFile, NetworkError>) -> Void
    private let queue = DispatchQueue(label: "OperationKit.BodySpool")
    // Sendable: only used on `queue`.
    private nonisolated(unsafe) var state = State.fresh

    private enum State {
        case fresh
        case writing(BodyReader, descriptor: Int32, SpooledFile)
        case ended
    }

    init(
        _ body: RequestBody, into folder: URL = FileManager.default.temporaryDirectory,
        completion: @escaping @Sendable (Result<SpooledFile, NetworkError>) -> Void
    ) {
        self.body = body
        self.folder = folder
        self.completion = completion
        goOn()
    }

    deinit { closeFile() }

    /// Nobody wants the file any more.
    func stop() {
        queue.async { [self] in
            closeFile()
            state = .ended
        }
    }

    private func goOn() {
        queue.async { [self] in
            do throws(NetworkError) { try write() } catch { end(.failure(error)) }
        }
    }

    private func write() throws(NetworkError) {
        if case .fresh = state { state = try begun() }
        guard case .writing(let reader, let descriptor, let file) = state else { return }
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 1)
        defer { room.deallocate() }
        while true {
            switch try reader.read(into: room) {
            case .notYet: return
            case .end: return end(.success(file))
            case .bytes(let count):
                try write(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(room)[..<count]), to: descriptor)
            }
        }
    }

    private func begun() throws(NetworkError) -> State {
        let reader = try BodyReader(body, waker: BodyWaker { [weak self] in self?.goOn() })
        let url = folder.appendingPathComponent("body-\(UUID().uuidString)")
        let descriptor = open(url.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Self.unwritable(errno) }
        return .writing(reader, descriptor: descriptor, SpooledFile(url))
    }

    private func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) throws(NetworkError) {
        var rest = bytes
        while !rest.isEmpty {
            let count = Foundation.write(descriptor, rest.baseAddress, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Self.unwritable(errno) }
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
        }
    }

    private func end(_ result: Result<SpooledFile, NetworkError>) {
        if case .ended = state { return }
        closeFile()
        state = .ended
        completion(result)
    }

    private func closeFile() {
        if case .writing(_, let descriptor, _) = state { close(descriptor) }
    }

    private static func unwritable(_ number: Int32) -> NetworkError {
        NetworkError(
            code: .fileUnwritable, phase: .sending,
            message: "The body could not be written to a temporary file. Is there room on the disk?",
            underlying: .init(domain: "errno", number: Int(number), text: String(cString: strerror(number))))
    }
}
