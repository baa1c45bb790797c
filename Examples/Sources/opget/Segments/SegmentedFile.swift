// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationFiles
import Synchronization

/// A file that several segments write at the same time, with a metadata file that stores the progress.
///
/// The file is written before the metadata file. If the program is killed, no byte that the metadata file counts is
/// lost. After a power failure, only synchronized bytes count.
final class SegmentedFile: Sendable {
    /// The interval at which the file is synchronized to the disk.
    private static let checkpointInterval = Duration.seconds(5)

    let metadata: SegmentMetadata
    private let names: SegmentNames
    private let part: OpenDescriptor
    private let metadataFile: OpenDescriptor
    private let marks: Mutex<[SegmentMetadata.Mark]>
    private let lastCheckpoint: Mutex<OperationInstant>
    private let isLetGo = Atomic(false)
    /// A Boolean value that indicates whether another program might use the names of the partial file and its metadata.
    private let hasFreeNames = Atomic(false)
    private let synchronize: @Sendable (OpenDescriptor) -> Bool
    private let setMode: @Sendable (Int32, mode_t) -> Int32
    /// The reason why the disk lost bytes of the file, or nil.
    private let loss = Mutex<FileFailure?>(nil)
    /// The number of bytes that existed when the file was opened.
    let resumedBytes: Int64
    /// The number of discarded bytes of another version.
    let discardedBytes: Int64

    var partURL: URL { names.part }

    /// Opens or creates the partial file for this process only.
    ///
    /// - Parameters:
    ///   - place: The destination of the file.
    ///   - wanted: The file to download. If a partial file of the same version exists, the download resumes with the
    ///     existing segments.
    ///   - synchronize: A closure that writes the buffered bytes of a file to the disk, for tests of failing disks.
    ///   - setMode: A closure that sets the permissions of an open file, for tests of volumes without permissions.
    init(
        for place: URL, _ wanted: SegmentMetadata,
        synchronize: @escaping @Sendable (OpenDescriptor) -> Bool = { $0.synchronize() },
        setMode: @escaping @Sendable (Int32, mode_t) -> Int32 = { fchmod($0, $1) }
    ) throws(FileFailure) {
        names = SegmentNames(for: place)
        // A move to this name would fail when all bytes are there.
        var status = stat()
        if lstat(place.path, &status) != 0, errno == ENAMETOOLONG {
            throw Self.failure("cannot have this name", ENAMETOOLONG)
        }
        try? FileManager.default.createDirectory(
            at: place.deletingLastPathComponent(), withIntermediateDirectories: true)
        let part = try SegmentClaim.open(names.part)
        let opened = try Self.opened(part, names, wanted, synchronize)
        self.part = part
        self.synchronize = synchronize
        self.setMode = setMode
        metadataFile = opened.metadataFile
        metadata = opened.metadata
        marks = Mutex(opened.marks)
        (resumedBytes, discardedBytes) = (opened.resumed, opened.discarded)
        lastCheckpoint = Mutex(SystemClock.system.now)
    }

    private struct Opened {
        var metadata: SegmentMetadata
        var marks: [SegmentMetadata.Mark]
        var metadataFile: OpenDescriptor
        var resumed: Int64 = 0
        var discarded: Int64 = 0
    }

    private static func opened(
        _ part: OpenDescriptor, _ names: SegmentNames, _ wanted: SegmentMetadata,
        _ synchronize: (OpenDescriptor) -> Bool
    ) throws(FileFailure) -> Opened {
        var metadata = wanted
        metadata.boot = SystemStart.identity
        let known = SegmentClaim.content(of: names.metadata).flatMap {
            SegmentMetadata.read(Array($0), boot: SystemStart.identity)
        }
        if let known, known.metadata.isOfSameFile(as: wanted), part.size == wanted.total {
            metadata.spans = known.metadata.spans
            let metadataFile = try writeMetadata(metadata, known.marks, at: names.metadata, synchronize)
            return Opened(metadata: metadata, marks: known.marks, metadataFile: metadataFile, resumed: sum(known.marks))
        }
        // A metadata file must never exist next to bytes that it does not describe.
        unlink(names.metadata.path)
        do throws(FileFailure) {
            guard ftruncate(part.number, 0) == 0 else { throw failure("cannot be emptied", errno) }
            try makeRoom(part, wanted.total)
            let marks = wanted.spans.map { _ in SegmentMetadata.Mark() }
            let metadataFile = try writeMetadata(metadata, marks, at: names.metadata, synchronize)
            return Opened(
                metadata: metadata, marks: marks, metadataFile: metadataFile,
                discarded: known.map { sum($0.marks) } ?? 0)
        } catch {
            // The file is empty, and this process has locked it.
            unlink(names.part.path)
            throw error
        }
    }

    private static func sum(_ marks: [SegmentMetadata.Mark]) -> Int64 { marks.reduce(0) { $0 + $1.written } }

    /// Reserves the disk space, so that opget detects a full disk before it downloads anything.
    ///
    /// Apple platforms do not support `posix_fallocate`, and the block counts of their `statvfs` have only 32 bits. On
    /// these platforms, the download fails when the disk is full.
    private static func makeRoom(_ part: OpenDescriptor, _ count: Int64) throws(FileFailure) {
        #if !canImport(Darwin)
            // A server can announce more bytes than any disk can hold, and some file systems would try to write all of
            // them.
            var status = statvfs()
            // Some file systems report no numbers at all.
            if fstatvfs(part.number, &status) == 0, status.f_blocks > 0, status.f_frsize > 0 {
                let (room, overflows) = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
                if !overflows, room < UInt64(clamping: count) { throw failure("needs \(count) bytes", ENOSPC) }
            }
            let number = posix_fallocate(part.number, 0, off_t(count))
            if number == 0 { return }
            // Some file systems do not support this call.
            guard number == EOPNOTSUPP || number == EINVAL else { throw failure("needs \(count) bytes", number) }
        #endif
        guard ftruncate(part.number, off_t(count)) == 0 else { throw failure("needs \(count) bytes", errno) }
    }

    private static func writeMetadata(
        _ metadata: SegmentMetadata, _ marks: [SegmentMetadata.Mark], at url: URL,
        _ synchronize: (OpenDescriptor) -> Bool
    ) throws(FileFailure) -> OpenDescriptor {
        guard let bytes = metadata.bytes(marks) else {
            throw FileFailure(.server, "invalidResponse", "The version identifier that the server sent is too long.")
        }
        let passing = url.path + ".new"
        unlink(passing)
        let number = open(passing, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard number >= 0 else { throw failure("has a metadata file that cannot be created", errno) }
        let descriptor = OpenDescriptor(number)
        // After a power failure, an empty file could otherwise replace marks that are on the disk.
        guard descriptor.put(bytes, at: 0), marks.allSatisfy({ $0.synchronized == 0 }) || synchronize(descriptor),
            rename(passing, url.path) == 0
        else {
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
    /// Returns the number of written bytes in a segment.
    func written(_ index: Int) -> Int64 { marks.withLock { $0[index].written } }

    /// The number of written bytes in all segments.
    var writtenBytes: Int64 { marks.withLock { Self.sum($0) } }

    /// Returns whether a segment is complete.
    func isComplete(_ index: Int) -> Bool { written(index) == metadata.spans[index].count }

    /// A Boolean value that indicates whether all segments are complete.
    var isComplete: Bool { metadata.spans.indices.allSatisfy(isComplete) }

    /// Adds bytes to a segment, from only one thread at a time for each segment.
    func write(_ bytes: UnsafeRawBufferPointer, to index: Int) throws(FileFailure) {
        guard !isLetGo.load(ordering: .acquiring) else {
            throw FileFailure(.failure, "closed", "The file was closed. Run opget again.")
        }
        try checkForLoss()
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
        let now = SystemClock.system.now
        let isDue = lastCheckpoint.withLock { last in
            guard last.advanced(by: Self.checkpointInterval) <= now else { return false }
            last = now
            return true
        }
        if isDue { try checkpoint() }
    }

    private func note(_ mark: SegmentMetadata.Mark, of index: Int) {
        let offset = Int64(SegmentMetadata.headSize + index * SegmentMetadata.markSize)
        // If the number cannot be written, a later run only downloads some bytes again.
        _ = metadataFile.put(SegmentMetadata.bytes(mark), at: offset)
    }

    /// Synchronizes the file to the disk, and then records the synchronized bytes.
    func checkpoint() throws(FileFailure) {
        let before = marks.withLock { $0 }
        try synchronizePart()
        for (index, mark) in before.enumerated() {
            let present = marks.withLock { marks in
                marks[index].synchronized = max(marks[index].synchronized, mark.written)
                return marks[index]
            }
            note(present, of: index)
        }
        _ = synchronize(metadataFile)
    }

    /// Writes the buffered bytes of the file to the disk, and gives the file up if this fails.
    private func synchronizePart() throws(FileFailure) {
        if synchronize(part) { return }
        let failure = Self.failure("cannot be stored on the disk", errno)
        // The system reports lost bytes only once. The next call would succeed, and a later run would keep the file.
        loss.withLock { $0 = failure }
        unlink(names.metadata.path)
        throw failure
    }

    private func checkForLoss() throws(FileFailure) {
        if let failure = loss.withLock({ $0 }) { throw failure }
    }

    /// The permissions that new files do not get.
    ///
    /// Reading this value changes it for a moment, so read it before other threads create files.
    static let mask = {
        let mask = umask(0)
        _ = umask(mask)
        return mask
    }()

    /// Moves the complete file to its destination in one step, and removes the metadata file.
    func publish(at place: URL, replacing: Bool, isDurable: Bool) async throws(FileFailure) {
        guard isComplete else {
            throw FileFailure(.failure, "incomplete", "A part of the file is missing. Run opget again.")
        }
        try checkForLoss()
        // Some volumes have no permissions, or their files belong to another user.
        guard
            setMode(part.number, 0o644 & ~Self.mask) == 0
                || [EPERM, EINVAL, ENOSYS, ENOTSUP, EOPNOTSUPP].contains(errno)
        else { throw Self.failure("cannot be finished", errno) }
        if isDurable { try synchronizePart() }
        let options = FileTransferOptions(existingItem: replacing ? .replace : .refuse, isDurable: isDurable)
        switch await outcome(of: FileMoveOperation(from: partURL, to: place, options: options)) {
        // The name of the partial file is free, so another program might already use it.
        case .success:
            hasFreeNames.store(true, ordering: .releasing)
            names.removeOrphan()
        case .failure(let error):
            _ = setMode(part.number, 0o600)
            throw error
        }
    }

    /// Unlocks the file and stops all later writes, so that another run can open the file.
    ///
    /// If the disk lost bytes of the file, the method first removes the file.
    func letGo() {
        isLetGo.store(true, ordering: .releasing)
        if loss.withLock({ $0 != nil }) { discard() }
        _ = flock(part.number, LOCK_UN)
    }

    /// Removes the partial file and its metadata file, unless the file was already removed or published.
    func discard() {
        let wasFree = hasFreeNames.exchange(true, ordering: .acquiringAndReleasing)
        if wasFree { return }
        unlink(names.metadata.path)
        unlink(names.part.path)
    }
}

/// Returns the checksum of a file, or a failure if the current task is canceled.
func checksum(of file: URL, _ algorithm: ChecksumAlgorithm) async -> Result<FileChecksum, FileFailure> {
    let operation = FileChecksumOperation(file, algorithm: algorithm)
    return await withTaskCancellationHandler {
        await outcome(of: operation)
    } onCancel: {
        operation.cancel()
    }
}

/// Runs a file operation and returns its result, with an error of this program.
func outcome<Value: Sendable>(of operation: FileOperation<Value>) async -> Result<Value, FileFailure> {
    operation.start()
    switch await operation.finalOutcome {
    case .success(let value): return .success(value)
    case .failure(let error): return .failure(FileFailure(error))
    case .cancelled(let cause): return .failure(FileFailure(.failure, "\(cause.code)", cause.message))
    }
}
