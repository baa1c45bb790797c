// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import Synchronization

/// A file that is written at several places at a time, and the card that tells how far each is.
///
/// Bytes are written before the card says so. So a program that is killed loses nothing that the card knows of; and after a
/// power cut only what was synchronized counts.
final class SegmentedFile: Sendable {
    /// After how long what was written is brought to the disk.
    private static let checkpointInterval = Duration.seconds(5)

    let card: SegmentCard
    let partURL: URL
    private let cardURL: URL
    private let part: Int32
    private let cardDescriptor: Int32
    private let marks: Mutex<[SegmentCard.Mark]>
    private let lastCheckpoint: Mutex<OperationInstant>
    /// How many bytes were there when it was opened.
    let resumedBytes: Int64
    /// How many were there of another version, and are gone.
    let discardedBytes: Int64

    /// Opens the part of a file, or makes it, for this opget alone.
    ///
    /// - Parameters:
    ///   - place: Where the file is to be.
    ///   - wanted: What is to be downloaded; a part of the same is gone on with, cut up as it is.
    init(for place: URL, _ wanted: SegmentCard) throws(FileFailure) {
        let key = SegmentCard.hash("file \(place.lastPathComponent)".utf8)
        let folder = place.deletingLastPathComponent()
        partURL = folder.appending(path: ".opget-\(key).part")
        cardURL = folder.appending(path: ".opget-\(key).card")
        try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        part = try Self.openClaimed(partURL)
        var card = wanted
        card.boot = SystemStart.identity
        var marks = wanted.spans.map { _ in SegmentCard.Mark() }
        var (resumed, discarded): (Int64, Int64) = (0, 0)
        let known = FileManager.default.contents(atPath: cardURL.path).flatMap {
            SegmentCard.read(Array($0), boot: SystemStart.identity)
        }
        if let known, known.card.isOfSameFile(as: wanted), Self.size(of: part) == wanted.total {
            card.spans = known.card.spans
            marks = known.marks
            resumed = marks.reduce(0) { $0 + $1.written }
        } else {
            discarded = known?.marks.reduce(0) { $0 + $1.written } ?? 0
            // No card may ever be found beside bytes of which it does not speak.
            unlink(cardURL.path)
            guard ftruncate(part, 0) == 0 else { throw Self.failure("cannot be emptied", errno) }
            try Self.makeRoom(part, wanted.total)
        }
        cardDescriptor = try Self.writeCard(card, marks, at: cardURL)
        self.card = card
        self.marks = Mutex(marks)
        (resumedBytes, discardedBytes) = (resumed, discarded)
        lastCheckpoint = Mutex(SystemClock.shared.now)
    }

    deinit {
        close(part)
        close(cardDescriptor)
    }

    /// Whether there is one for a place, with which somebody might go on.
    static func exists(for place: URL) -> Bool {
        let key = SegmentCard.hash("file \(place.lastPathComponent)".utf8)
        return FileManager.default.fileExists(
            atPath: place.deletingLastPathComponent().appending(path: ".opget-\(key).card").path)
    }

    /// Throws away what is there for a place.
    static func remove(for place: URL) {
        let key = SegmentCard.hash("file \(place.lastPathComponent)".utf8)
        for ending in ["card", "part"] {
            unlink(place.deletingLastPathComponent().appending(path: ".opget-\(key).\(ending)").path)
        }
    }

    private static func openClaimed(_ url: URL) throws(FileFailure) -> Int32 {
        let descriptor = open(url.path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw failure("cannot be opened", errno) }
        var status = stat()
        let isOurs =
            fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && status.st_nlink == 1
            && status.st_uid == geteuid()
        guard isOurs else {
            close(descriptor)
            throw FileFailure(.disk, "fileUnwritable", "\(url.path) is not a file of yours alone. Remove it.")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            close(descriptor)
            throw FileFailure(
                .disk, "destinationBusy",
                "Another opget, or another URL of this one, is writing this file. Wait for it.")
        }
        return descriptor
    }

    private static func size(of descriptor: Int32) -> Int64 {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? Int64(status.st_size) : -1
    }

    /// Reserves the room, so that a full disk is found out before anything is downloaded.
    private static func makeRoom(_ descriptor: Int32, _ count: Int64) throws(FileFailure) {
        #if os(Linux)
            let number = posix_fallocate(descriptor, 0, off_t(count))
            if number == 0 { return }
            // Not all file systems can.
            guard number == EOPNOTSUPP || number == EINVAL else {
                _ = ftruncate(descriptor, 0)
                throw failure("needs \(count) bytes", number)
            }
        #endif
        guard ftruncate(descriptor, off_t(count)) == 0 else { throw failure("needs \(count) bytes", errno) }
    }

    private static func writeCard(
        _ card: SegmentCard, _ marks: [SegmentCard.Mark], at url: URL
    ) throws(FileFailure) -> Int32 {
        let passing = url.path + ".new"
        unlink(passing)
        let descriptor = open(passing, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0, let bytes = card.bytes(marks) else {
            throw failure("has a card that cannot be made", errno)
        }
        guard put(bytes, to: descriptor, at: 0), rename(passing, url.path) == 0 else {
            let number = errno
            close(descriptor)
            unlink(passing)
            throw failure("has a card that cannot be written", number)
        }
        return descriptor
    }

    private static func put(_ bytes: [UInt8], to descriptor: Int32, at offset: Int64) -> Bool {
        bytes.withUnsafeBytes { put($0, to: descriptor, at: offset) }
    }

    private static func put(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32, at offset: Int64) -> Bool {
        var (rest, offset) = (bytes, offset)
        while !rest.isEmpty {
            let count = pwrite(descriptor, rest.baseAddress, rest.count, off_t(offset))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
            offset += Int64(count)
        }
        return true
    }

    static func failure(_ what: String, _ number: Int32) -> FileFailure {
        let isFull = number == ENOSPC || number == EDQUOT
        let reason = String(cString: strerror(number))
        let advice = isFull ? " Free some room and run it again." : ""
        return FileFailure(.disk, isFull ? "diskFull" : "fileUnwritable", "The file \(what): \(reason).\(advice)")
    }
}

// Writing and finishing.
extension SegmentedFile {
    /// How much of a segment is written.
    func written(_ index: Int) -> Int64 { marks.withLock { $0[index].written } }

    /// How much of all is written.
    var writtenBytes: Int64 { marks.withLock { $0.reduce(0) { $0 + $1.written } } }

    /// Adds bytes to a segment; only one thread at a time for each.
    func write(_ bytes: UnsafeRawBufferPointer, to index: Int) throws(FileFailure) {
        let span = card.spans[index]
        let written = written(index)
        guard written + Int64(bytes.count) <= span.count else {
            throw FileFailure(.server, "bodyTooLarge", "The server sent more bytes than it was asked for.")
        }
        guard Self.put(bytes, to: part, at: span.start + written) else {
            throw Self.failure("cannot be written", errno)
        }
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

    private func note(_ mark: SegmentCard.Mark, of index: Int) {
        let offset = Int64(SegmentCard.headSize + index * SegmentCard.markSize)
        // A number that is not noted costs bytes that are asked for again, and nothing else.
        _ = Self.put(SegmentCard.bytes(mark), to: cardDescriptor, at: offset)
    }

    /// Brings to the disk what is written, and then notes that it is there.
    func checkpoint() {
        let before = marks.withLock { $0 }
        guard fdatasync(part) == 0 else { return }
        for (index, mark) in before.enumerated() {
            let present = marks.withLock { marks in
                marks[index].synchronized = max(marks[index].synchronized, mark.written)
                return marks[index]
            }
            note(present, of: index)
        }
        _ = fdatasync(cardDescriptor)
    }

    /// Puts the file in its place, in one step, and removes the card.
    func publish(at place: URL, replacing: Bool, isDurable: Bool) async throws(FileFailure) {
        let mask = umask(0)
        _ = umask(mask)
        guard fchmod(part, 0o644 & ~mask) == 0, !isDurable || fsync(part) == 0 else {
            throw Self.failure("cannot be finished", errno)
        }
        let options = FileTransferOptions(existingItem: replacing ? .replace : .refuse, isDurable: isDurable)
        switch await outcome(of: FileMoveOperation(from: partURL, to: place, options: options)) {
        case .success: unlink(cardURL.path)
        case .failure(let error):
            _ = fchmod(part, 0o600)
            throw error
        }
    }

    /// Removes all of it.
    func discard() {
        unlink(cardURL.path)
        unlink(partURL.path)
    }
}

/// What a file operation gave, with its error as this program tells it.
func outcome<Value: Sendable>(of operation: FileOperation<Value>) async -> Result<Value, FileFailure> {
    operation.start()
    switch await operation.finalOutcome {
    case .success(let value): return .success(value)
    case .failure(let error): return .failure(FileFailure(error))
    case .cancelled(let cause): return .failure(FileFailure(.failure, "cancelled", cause.message))
    }
}
