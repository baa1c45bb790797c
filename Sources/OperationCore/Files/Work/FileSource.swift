// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

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
