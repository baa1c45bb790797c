// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// An operation that reads a file into memory.
///
/// ```swift
/// let read = FileReadOperation(URL(fileURLWithPath: "/etc/hostname"))
/// print(try await read.run().count)
/// ```
///
/// The operation follows symbolic links. The operation reads devices until their end. The operation can also read files
/// of unknown length, such as the files in `/proc`. If the data exceeds the ``FileReadOptions/maximumSize``, the
/// operation fails with the code `tooLarge`. The operation does not read directories, pipes or sockets.
public final class FileReadOperation: FileOperation<Data>, @unchecked Sendable {
    // Sendable: it adds only constants.

    /// The URL of the file to read.
    public let url: URL
    /// The options that determine the range and the maximum size of the data.
    package let options: FileReadOptions

    /// Creates an operation that reads a file.
    ///
    /// - Parameters:
    ///   - url: The URL of the file to read.
    ///   - options: The options that determine the range and the maximum size of the data. By default, the operation
    ///     reads the whole file if it is not larger than 256 MiB.
    public init(_ url: URL, options: FileReadOptions = FileReadOptions()) {
        self.url = url
        self.options = options
        super.init()
    }

    override func perform(_ work: FileWork) throws(FileInterruption) -> Data {
        let address = try FileAddress(url, for: .reading)
        let place = FilePlace(.reading, address.description)
        var source = try FileSource(FolderEntry(address.path), at: place, work: work)
        if let range = options.range { try source.restrict(to: range) }
        let (expected, limit) = (source.expectedBytes, max(options.maximumSize, 0))
        work.expect(bytes: expected)
        var data = Data()
        if let expected {
            guard expected <= limit else { throw .failed(place.error(.tooLarge)) }
            // The length of a file may be wrong, so at most one gibibyte is reserved. Longer data grows while it is
            // read.
            data.reserveCapacity(Int(min(expected, 1 << 30)))
        }
        while let chunk = try source.next() {
            guard chunk.count <= limit - data.count else { throw .failed(place.error(.tooLarge)) }
            data.append(chunk.bindMemory(to: UInt8.self))
            work.advance(bytes: chunk.count)
        }
        return data
    }
}

/// Options for the range and the maximum size of the data to read.
public struct FileReadOptions: Sendable, Hashable {
    /// The zero-based range of bytes to read.
    ///
    /// The default is `nil`, which reads all bytes. If the range extends beyond the end of the file, the operation
    /// reads the part inside the file. If the range begins outside the file, the operation fails with the code
    /// `rangeOutsideFile`.
    public var range: Range<Int64>?

    /// The maximum number of bytes to read.
    ///
    /// The default is 256 MiB. This limit protects your program from endless files. If the file or the range is larger,
    /// the operation fails with the code `tooLarge` and returns no data.
    public var maximumSize: Int

    /// Creates options for reading a file.
    ///
    /// - Parameters:
    ///   - range: The range of bytes to read. The default is `nil`, which reads all bytes.
    ///   - maximumSize: The maximum number of bytes to read. The default is 256 MiB.
    public init(range: Range<Int64>? = nil, maximumSize: Int = 256 * 1024 * 1024) {
        self.range = range
        self.maximumSize = maximumSize
    }
}

/// A file that is read in chunks, from its start or an offset to its end.
struct FileSource {
    private let work: FileWork
    private let file: OpenFile
    private let place: FilePlace
    let status: FileStatus
    /// The offset of the next byte, or `nil` for a file that is read sequentially.
    private var offset: Int64?
    /// The number of bytes that may still be read.
    private var remaining: Int64

    /// Opens a file, unless it is a directory, a pipe or a socket, which cannot be read to an end.
    init(_ entry: FolderEntry, flags: Int32 = 0, at place: FilePlace, work: FileWork) throws(FileInterruption) {
        // Opens without blocking, because opening a pipe without a writer would wait forever.
        file = try work.files.open(entry, O_RDONLY | O_NONBLOCK | flags).get(at: place)
        status = try work.files.status(of: file).get(at: place)
        switch status.kind {
        case .regular, .device: break
        case .directory: throw .failed(place.error(for: SystemError(EISDIR)))
        case .symbolicLink, .other: throw .failed(place.error(.unsupportedKind))
        }
        self.work = work
        self.place = place
        remaining = .max
    }

    /// The expected number of bytes, or `nil` for devices and for files whose length the system does not know in
    /// advance.
    var expectedBytes: Int64? {
        guard status.kind == .regular, status.size > 0 else { return nil }
        return min(max(status.size - (offset ?? 0), 0), remaining)
    }

    /// Limits reading to a range of the file, or to the part of the range that exists.
    mutating func restrict(to range: Range<Int64>) throws(FileInterruption) {
        guard range.lowerBound >= 0, try contains(range.lowerBound) else {
            throw .failed(place.error(.rangeOutsideFile))
        }
        offset = range.lowerBound
        remaining = range.upperBound - range.lowerBound
    }

    /// Returns whether an offset is in the file or at its end.
    private func contains(_ offset: Int64) throws(FileInterruption) -> Bool {
        guard status.kind == .regular, offset > status.size else { return true }
        // The size of a file of unknown length, such as a file in `/proc`, is zero.
        guard status.size == 0 else { return false }
        let byte = work.withBuffer { UnsafeMutableRawBufferPointer(rebasing: $0.prefix(1)) }
        return try work.files.read(file, into: byte, at: offset - 1).get(at: place) > 0
    }

    /// Returns the next bytes in the buffer of the work, or `nil` at the end.
    ///
    /// The method first checks whether the operation was canceled.
    mutating func next() throws(FileInterruption) -> UnsafeRawBufferPointer? {
        try work.checkCancellation()
        guard remaining > 0 else { return nil }
        let (files, file, offset) = (work.files, file, offset)
        let limit = Int(min(Int64(FileWork.chunkSize), remaining))
        let part = work.withBuffer { UnsafeMutableRawBufferPointer(rebasing: $0.prefix(limit)) }
        let result = try work.patiently(status.kind == .device ? file : nil, isWriting: false) {
            files.read(file, into: part, at: offset)
        }
        let read = try result.get(at: place)
        guard read > 0 else { return nil }
        remaining -= Int64(read)
        if let offset { self.offset = offset + Int64(read) }
        return UnsafeRawBufferPointer(rebasing: part.prefix(read))
    }
}
