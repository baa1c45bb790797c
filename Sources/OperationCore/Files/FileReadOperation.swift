// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Reads a file into memory.
///
/// ```swift
/// let read = FileReadOperation(URL(fileURLWithPath: "/etc/hostname"))
/// print(try await read.run().count)
/// ```
///
/// A symbolic link is followed. Files without a length of their own, such as those in `/proc` and devices, are read to
/// their end or to the options' `maximumSize`; pipes and sockets are refused.
public final class FileReadOperation: FileOperation<Data>, @unchecked Sendable {
    // Sendable: it adds only constants.

    /// The file.
    public let url: URL
    /// What of it is read.
    public let options: FileReadOptions

    /// Makes an operation that reads a file.
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
            // The length of a file may be wrong, so memory is reserved for a gibibyte at most. Longer data grows as it
            // is read.
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

/// What part of a file is read, and how much of it at most.
public struct FileReadOptions: Sendable, Hashable {
    /// The bytes to read, counted from zero; nil for all.
    ///
    /// Of a range that goes beyond the end, what there is.
    public var range: Range<Int64>?

    /// How many bytes are read at most, so that an endless file does not eat up the memory: 256 MiB.
    ///
    /// A larger file, or range, is a failure with the code `tooLarge`; nothing of it is kept.
    public var maximumSize: Int

    /// Options with these values.
    public init(range: Range<Int64>? = nil, maximumSize: Int = 256 * 1024 * 1024) {
        self.range = range
        self.maximumSize = maximumSize
    }
}

/// A file that is read from its start, or from an offset, to its end, chunk by chunk.
struct FileSource {
    private let work: FileWork
    private let file: OpenFile
    private let place: FilePlace
    let status: FileStatus
    /// Where the next byte is read; nil for files that are read as they come.
    private var offset: Int64?
    /// How many bytes may still be read.
    private var remaining: Int64

    /// Opens a file, and refuses what cannot be read to an end: directories, pipes and sockets.
    init(_ entry: FolderEntry, flags: Int32 = 0, at place: FilePlace, work: FileWork) throws(FileInterruption) {
        // Not blocking: the opening of a pipe to which nobody writes would wait for ever.
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

    /// How many bytes are expected; nil for devices and for files whose length the system makes up while they are read.
    var expectedBytes: Int64? {
        guard status.kind == .regular, status.size > 0 else { return nil }
        return min(max(status.size - (offset ?? 0), 0), remaining)
    }

    /// Reads only this part of the file, or what there is of it.
    mutating func restrict(to range: Range<Int64>) throws(FileInterruption) {
        let isInFile = status.kind != .regular || range.lowerBound <= status.size
        guard range.lowerBound >= 0, isInFile else { throw .failed(place.error(.rangeOutsideFile)) }
        offset = range.lowerBound
        remaining = range.upperBound - range.lowerBound
    }

    /// The next bytes, in the work's buffer; nil at the end.
    ///
    /// Looks before whether the operation was cancelled.
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
