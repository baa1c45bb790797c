// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation

/// A file or a part of a file that a session can send as the body of a request.
///
/// The length of the region does not change after you create the region. If the file changes before the session has
/// read the region, the transfer fails instead of sending a truncated or padded body.
public struct FileRegion: Sendable, Hashable {
    /// The URL of the file.
    public let url: URL
    /// The offset of the region's first byte in the file.
    public let offset: Int64
    /// The number of bytes in the region.
    public let length: Int64
    /// The status of the file when the region was created.
    private let status: FileRegionStatus

    /// Creates a region from a file or a part of a file.
    ///
    /// The initializer reads the size and the modification date of the file, but does not open the file.
    ///
    /// - Parameters:
    ///   - url: The URL of a regular file.
    ///   - offset: The offset of the region's first byte in the file. The default is 0.
    ///   - length: The number of bytes in the region. The default is `nil`, which includes all bytes up to the end of
    ///     the file.
    ///
    /// - Throws: A ``NetworkError`` with the code ``NetworkError/Code/bodyUnreadable`` if there is no regular file at
    ///   the URL, or if the region extends beyond the end of the file.
    public init(_ url: URL, offset: Int64 = 0, length: Int64? = nil) throws(NetworkError) {
        func refusal(_ reason: String) -> NetworkError {
            NetworkError(code: .bodyUnreadable, phase: .checking, message: "\(url.path) cannot be sent: \(reason)")
        }
        guard url.isFileURL else { throw refusal("the URL is not a file URL. Create it with URL(fileURLWithPath:).") }
        guard let status = FileRegionStatus(path: url.path) else {
            throw refusal("it does not exist or cannot be accessed. Check the path.")
        }
        guard status.isRegular else { throw refusal("it is not a regular file. Send it as a stream.") }
        guard offset >= 0, offset <= status.size, (length ?? 0) >= 0, (length ?? 0) <= status.size - offset else {
            throw refusal("the region begins or ends outside the file, which has \(status.size) bytes.")
        }
        self.url = url
        self.offset = offset
        self.length = length ?? status.size - offset
        self.status = status
    }
}

extension FileRegion {
    /// Whether the region is the whole file at its current size.
    package var isWhole: Bool { offset == 0 && FileRegionStatus(path: url.path)?.size == length }

    /// Returns whether the file is still the unchanged file of the region.
    ///
    /// The comparison leaves out the time of the last status change, because reading or linking the file may also
    /// change that time.
    func isPart(of present: FileRegionStatus) -> Bool { present == status }

    /// Checks that the file with this name still exists and is unchanged.
    func check() throws(NetworkError) {
        guard let present = FileRegionStatus(path: url.path) else {
            throw NetworkError(
                code: .bodyUnreadable, phase: .sending, message: "\(url.path) cannot be read. Check the file.")
        }
        guard isPart(of: present) else { throw changed }
    }

    var changed: NetworkError {
        NetworkError(
            code: .bodyChanged, phase: .sending,
            message: "\(url.path) changed after the request was created. Create the request again.")
    }
}

/// A producer that reads a file or a stream, so that the thread of the transfer never waits for it.
///
/// The bytes are read on the producer's own queue, two portions ahead.
final class ReadAheadProducer: BodyProducer {
    /// Returns the bytes at an offset, whose number is given, or no bytes at the end of a stream.
    private typealias Read = (_ offset: Int64, _ count: Int) throws(NetworkError) -> [UInt8]

    private let state: Locked<ReadAhead>
    private let queue = DispatchQueue(label: "OperationKit.ReadAheadProducer", autoreleaseFrequency: .workItem)
    // Sendable: only used on `queue`.
    private nonisolated(unsafe) let read: Read

    private init(_ ahead: ReadAhead, _ read: @escaping Read) {
        state = Locked(ahead)
        self.read = read
    }

    /// Creates a producer that opens and reads a file.
    convenience init(_ region: FileRegion) {
        var file: OpenRegion?
        self.init(ReadAhead(length: region.length, portion: 128 << 10)) { offset, count throws(NetworkError) in
            let opened = if let file { file } else { try OpenRegion(region) }
            file = opened
            return try opened.read(at: offset, count)
        }
    }

    /// Creates a producer that reads an `InputStream`, whose `read` method may block.
    convenience init(_ stream: Unchecked<InputStream>) {
        var isOpen = false
        self.init(ReadAhead(length: .max, portion: 64 << 10)) { _, count throws(NetworkError) in
            if !isOpen { stream.value.open() }
            isOpen = true
            var given = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
                if let base = buffer.baseAddress { given = stream.value.read(base, maxLength: count) }
                initialized = max(given, 0)
            }
            if given <= 0 { stream.value.close() }
            guard given >= 0 else {
                // `streamError` traps in Foundation on Linux.
                throw NetworkError(
                    code: .bodyUnreadable, phase: .sending, message: "The stream of the body could not be read.")
            }
            return bytes
        }
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
                let bytes = try read(offset, count)
                waker = state.withLock { $0.filled(bytes) }
            } catch {
                waker = state.withLock { $0.failed(error) }
            }
            waker?.wake()
        }
    }
}

/// The status of a file to send.
package struct FileRegionStatus: Hashable, Sendable {
    package let size: Int64
    package let modificationTime: Int64
    package let isRegular: Bool
    /// The device, which together with the inode identifies the file regardless of its name.
    package let device: UInt64
    package let inode: UInt64

    package init?(path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    package init?(descriptor: Int32) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        self.init(status)
    }

    private init(_ status: stat) {
        size = Int64(status.st_size)
        #if canImport(Darwin)
            let time = status.st_mtimespec
        #else
            let time = status.st_mtim
        #endif
        modificationTime = Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
        isRegular = status.st_mode & S_IFMT == S_IFREG
        device = UInt64(truncatingIfNeeded: status.st_dev)
        inode = UInt64(truncatingIfNeeded: status.st_ino)
    }
}

/// The file of a ``FileRegion``, open for reading.
final class OpenRegion {
    private let region: FileRegion
    private let descriptor: Int32

    init(_ region: FileRegion) throws(NetworkError) {
        self.region = region
        descriptor = open(region.url.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { throw Self.unreadable(region, errno) }
        try check()
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Reads bytes at an offset in the region.
    func read(at offset: Int64, _ count: Int) throws(NetworkError) -> [UInt8] {
        var failure: NetworkError?
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            let room = UnsafeMutableRawBufferPointer(buffer)
            do throws(NetworkError) {
                while initialized < count {
                    let rest = UnsafeMutableRawBufferPointer(rebasing: room[initialized..<count])
                    initialized += try read(at: offset + Int64(initialized), into: rest)
                }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return bytes
    }

    /// Reads at least one byte at an offset in the region.
    private func read(at offset: Int64, into target: UnsafeMutableRawBufferPointer) throws(NetworkError) -> Int {
        while true {
            let count = pread(descriptor, target.baseAddress, target.count, off_t(region.offset + offset))
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Self.unreadable(region, errno) }
            guard count > 0 else { throw region.changed }
            // Check once more after the last byte.
            if offset + Int64(count) == region.length { try check() }
            return count
        }
    }

    /// Checks that the open file is still the unchanged file of the region.
    private func check() throws(NetworkError) {
        guard let status = FileRegionStatus(descriptor: descriptor), region.isPart(of: status) else {
            throw region.changed
        }
    }

    private static func unreadable(_ region: FileRegion, _ number: Int32) -> NetworkError {
        if let error = DescriptorShortage.error(number, opening: region.url.path, phase: .sending) { return error }
        return NetworkError(
            code: .bodyUnreadable, phase: .sending, message: "\(region.url.path) cannot be read. Check the file.",
            underlying: .init(domain: "errno", number: Int(number), text: String(cString: strerror(number))))
    }
}
