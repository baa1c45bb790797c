// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationFiles
import Synchronization

/// A file that is written at several places at a time, and the metadata file that tells how far each is.
///
/// Bytes are written before the metadata file says so. So a program that is killed loses nothing that the metadata file knows of; and after a
/// power cut only what was synchronized counts.
final class SegmentedFile: Sendable {
    /// After how long what was written is brought to the disk.
    private static let checkpointInterval = Duration.seconds(5)

    let metadata: SegmentMetadata
    private let names: SegmentNames
    private let part: OpenDescriptor
    private let metadataFile: OpenDescriptor
    private let marks: Mutex<[SegmentMetadata.Mark]>
    private let lastCheckpoint: Mutex<OperationInstant>
    private let isLetGo = Atomic(false)
    /// How many bytes were there when it was opened.
    let resumedBytes: Int64
    /// How many were there of another version, and are gone.
    let discardedBytes: Int64

    var partURL: URL { names.part }

    /// Opens the part of a file, or makes it, for this opget alone.
    ///
    /// - Parameters:
    ///   - place: Where the file is to be.
    ///   - wanted: What is to be downloaded; a part of the same is gone on with, cut up as it is.
    init(for place: URL, _ wanted: SegmentMetadata) throws(FileFailure) {
        names = SegmentNames(for: place)
        try? FileManager.default.createDirectory(
            at: place.deletingLastPathComponent(), withIntermediateDirectories: true)
        guard let part = try SegmentClaim.open(names.part) else {
            throw FileFailure(.disk, "fileUnwritable", "The file cannot be opened.")
        }
        let opened = try Self.opened(part, names, wanted)
        self.part = part
        metadataFile = opened.metadataFile
        metadata = opened.metadata
        marks = Mutex(opened.marks)
        (resumedBytes, discardedBytes) = (opened.resumed, opened.discarded)
        lastCheckpoint = Mutex(SystemClock.shared.now)
    }

    private struct Opened {
        var metadata: SegmentMetadata
        var marks: [SegmentMetadata.Mark]
        var metadataFile: OpenDescriptor
        var resumed: Int64 = 0
        var discarded: Int64 = 0
    }

    private static func opened(
        _ part: OpenDescriptor, _ names: SegmentNames, _ wanted: SegmentMetadata
    ) throws(FileFailure) -> Opened {
        var metadata = wanted
        metadata.boot = SystemStart.identity
        let known = SegmentClaim.content(of: names.metadata).flatMap {
            SegmentMetadata.read(Array($0), boot: SystemStart.identity)
        }
        if let known, known.metadata.isOfSameFile(as: wanted), part.size == wanted.total {
            metadata.spans = known.metadata.spans
            let metadataFile = try writeMetadata(metadata, known.marks, at: names.metadata)
            return Opened(metadata: metadata, marks: known.marks, metadataFile: metadataFile, resumed: sum(known.marks))
        }
        // No metadata file may ever be found beside bytes of which it does not speak.
        unlink(names.metadata.path)
        do throws(FileFailure) {
            guard ftruncate(part.number, 0) == 0 else { throw failure("cannot be emptied", errno) }
            try makeRoom(part, wanted.total)
            let marks = wanted.spans.map { _ in SegmentMetadata.Mark() }
            let metadataFile = try writeMetadata(metadata, marks, at: names.metadata)
            return Opened(
                metadata: metadata, marks: marks, metadataFile: metadataFile,
                discarded: known.map { sum($0.marks) } ?? 0)
        } catch {
            // Nothing is in it, and the claim is ours.
            unlink(names.part.path)
            throw error
        }
    }

    private static func sum(_ marks: [SegmentMetadata.Mark]) -> Int64 { marks.reduce(0) { $0 + $1.written } }

    /// Reserves the disk space, so that a full disk is found before anything is downloaded.
    ///
    /// Apple platforms have no `posix_fallocate`, and the block counts of their `statvfs` have only 32 bits. There, the
    /// download fails when the disk is full.
    private static func makeRoom(_ part: OpenDescriptor, _ count: Int64) throws(FileFailure) {
        #if !canImport(Darwin)
            // A server may announce more bytes than any disk can hold, and some file systems would try to write all of
            // them.
            var status = statvfs()
            // Some file systems report no numbers at all.
            if fstatvfs(part.number, &status) == 0, status.f_blocks > 0, status.f_frsize > 0 {
                let (room, overflows) = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
                if !overflows, room < UInt64(clamping: count) { throw failure("needs \(count) bytes", ENOSPC) }
            }
            let number = posix_fallocate(part.number, 0, off_t(count))
            if number == 0 { return }
            // Not all file systems can.
            guard number == EOPNOTSUPP || number == EINVAL else { throw failure("needs \(count) bytes", number) }
        #endif
        guard ftruncate(part.number, off_t(count)) == 0 else { throw failure("needs \(count) bytes", errno) }
    }

    private static func writeMetadata(
        _ metadata: SegmentMetadata, _ marks: [SegmentMetadata.Mark], at url: URL
    ) throws(FileFailure) -> OpenDescriptor {
        guard let bytes = metadata.bytes(marks) else {
            throw FileFailure(.server, "invalidResponse", "The version identifier that the server sent is too long.")
        }
        let passing = url.path + ".new"
        unlink(passing)
        let number = open(passing, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard number >= 0 else { throw failure("has a metadata file that cannot be created", errno) }
        let descriptor = OpenDescriptor(number)
        guard descriptor.put(bytes, at: 0), rename(passing, url.path) == 0 else {
            let number = errno
            unlink(passing)
            throw failure("has a metadata file that cannot be written", number)
        }
        return descriptor
    }

    static func failure(_ what: String, _ number: Int32) -> FileFailure {
        let isFull = number == ENOSPC || number == EDQUOT
        let reason = String(cString: strerror(number))
        let advice = isFull ? " Free some space and run opget again." : ""
        return FileFailure(.disk, isFull ? "diskFull" : "fileUnwritable", "The file \(what): \(reason).\(advice)")
    }
}

// Writing and finishing.
extension SegmentedFile {
    /// How much of a segment is written.
    func written(_ index: Int) -> Int64 { marks.withLock { $0[index].written } }

    /// How much of all is written.
    var writtenBytes: Int64 { marks.withLock { Self.sum($0) } }

    /// Whether nothing of a segment is missing.
    func isComplete(_ index: Int) -> Bool { written(index) == metadata.spans[index].count }

    /// Whether nothing is missing.
    var isComplete: Bool { metadata.spans.indices.allSatisfy(isComplete) }

    /// Adds bytes to a segment; only one thread at a time for each.
    func write(_ bytes: UnsafeRawBufferPointer, to index: Int) throws(FileFailure) {
        guard !isLetGo.load(ordering: .acquiring) else {
            throw FileFailure(.failure, "closed", "The file was closed. Run opget again.")
        }
        let span = metadata.spans[index]
        let written = written(index)
        guard written + Int64(bytes.count) <= span.count else {
            throw FileFailure(.server, "bodyTooLarge", "The server sent more bytes than requested.")
        }
        guard part.put(bytes, at: span.start + written) else { throw Self.failure("cannot be written", errno) }
        let mark = marks.withLock { marks in
            marks[index].written += Int64(bytes.count)
            return marks[index]
        }
        note(mark, of: index)
        let now = SystemClock.shared.now
        let isDue = lastCheckpoint.withLock { last in
            guard last.advanced(by: Self.checkpointInterval) <= now else { return false }
            last = now
            return true
        }
        if isDue { checkpoint() }
    }

    private func note(_ mark: SegmentMetadata.Mark, of index: Int) {
        let offset = Int64(SegmentMetadata.headSize + index * SegmentMetadata.markSize)
        // A number that is not noted costs bytes that are asked for again, and nothing else.
        _ = metadataFile.put(SegmentMetadata.bytes(mark), at: offset)
    }

    /// Brings to the disk what is written, and then notes that it is there.
    func checkpoint() {
        let before = marks.withLock { $0 }
        guard part.synchronize() else { return }
        for (index, mark) in before.enumerated() {
            let present = marks.withLock { marks in
                marks[index].synchronized = max(marks[index].synchronized, mark.written)
                return marks[index]
            }
            note(present, of: index)
        }
        _ = metadataFile.synchronize()
    }

    /// Puts the file in its place, in one step, and removes the metadata file; a file of which something is missing never.
    func publish(at place: URL, replacing: Bool, isDurable: Bool) async throws(FileFailure) {
        guard isComplete else {
            throw FileFailure(.failure, "incomplete", "A part of the file is missing. Run opget again.")
        }
        let mask = umask(0)
        _ = umask(mask)
        guard fchmod(part.number, 0o644 & ~mask) == 0, !isDurable || fsync(part.number) == 0 else {
            throw Self.failure("cannot be finished", errno)
        }
        let options = FileTransferOptions(existingItem: replacing ? .replace : .refuse, isDurable: isDurable)
        switch await outcome(of: FileMoveOperation(from: partURL, to: place, options: options)) {
        case .success: unlink(names.metadata.path)
        case .failure(let error):
            _ = fchmod(part.number, 0o600)
            throw error
        }
    }

    /// Gives up the claim, whoever else still holds the file: nothing more is written, and it can be opened anew.
    func letGo() {
        isLetGo.store(true, ordering: .releasing)
        _ = flock(part.number, LOCK_UN)
    }

    /// Removes all of it.
    func discard() {
        unlink(names.metadata.path)
        unlink(names.part.path)
    }
}

/// What a file operation gave, with its error as this program tells it.
func outcome<Value: Sendable>(of operation: FileOperation<Value>) async -> Result<Value, FileFailure> {
    operation.start()
    switch await operation.finalOutcome {
    case .success(let value): return .success(value)
    case .failure(let error): return .failure(FileFailure(error))
    case .cancelled(let cause): return .failure(FileFailure(.failure, "\(cause.code)", cause.message))
    }
}
