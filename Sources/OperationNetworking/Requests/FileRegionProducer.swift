// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch

/// Gives the bytes of a file to a transfer, whose thread must not wait for a disk or a server of files.
///
/// The file is opened and read on a queue of its own, two portions ahead.
final class FileRegionProducer: BodyProducer {
    private static let portion = 128 << 10

    private let state: Locked<ReadAhead>
    private let queue = DispatchQueue(label: "OperationKit.FileRegionProducer")
    private let region: FileRegion
    // Sendable: only used on `queue`.
    private nonisolated(unsafe) var file: OpenRegion?

    init(_ region: FileRegion) {
        self.region = region
        state = Locked(ReadAhead(length: region.length, portion: Self.portion))
    }

    func produce(into buffer: UnsafeMutableRawBufferPointer, waker: BodyWaker) throws -> BodyPortion {
        let (portion, reads) = try state.withLock { state throws(NetworkError) in
            try state.take(into: buffer, waker: waker)
        }
        if reads { queue.async { self.readAhead() } }
        return portion
    }

    private func readAhead() {
        while let (offset, count) = state.withLock({ $0.next() }) {
            let waker: BodyWaker?
            do throws(NetworkError) {
                let bytes = try read(at: offset, count)
                waker = state.withLock { $0.filled(bytes) }
            } catch {
                waker = state.withLock { $0.failed(error) }
            }
            waker?.wake()
        }
    }

    private func read(at offset: Int64, _ count: Int) throws(NetworkError) -> [UInt8] {
        let file = try openedFile()
        var failure: NetworkError?
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            let room = UnsafeMutableRawBufferPointer(buffer)
            do throws(NetworkError) {
                while initialized < count {
                    let rest = UnsafeMutableRawBufferPointer(rebasing: room[initialized..<count])
                    initialized += try file.read(at: offset + Int64(initialized), into: rest)
                }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return bytes
    }

    private func openedFile() throws(NetworkError) -> OpenRegion {
        if let file { return file }
        let opened = try OpenRegion(region)
        file = opened
        return opened
    }
}
