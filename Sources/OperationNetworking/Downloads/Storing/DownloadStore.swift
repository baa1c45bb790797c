// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The files of one download: the part, the card beside it, and the place where the file is to appear.
///
/// Whatever stands under the part's name and is no plain file of one name (a link that somebody laid there, say) is taken
/// away and never written through. The part is claimed for as long as it is open, so that two downloads to one place
/// cannot write into each other.
///
/// Not Sendable on purpose: it stays on the queue of its download.
final class DownloadStore {
    private static let attempts = 64
    private static let largestCard = 64 << 10
    /// Of a card that is being written.
    private static let newSuffix = ".new"
    private static let chunkSize = 256 << 10

    private let folder: PreparedFolder
    private let destination: DownloadDestination
    private let options: DownloadOptions
    private let names: DownloadNames
    private var file: OpenFile?
    private var card: DownloadCard?
    /// How many bytes the part has.
    private(set) var length: Int64 = 0
    /// The checksum of all bytes of the part; nil if not all of them came by.
    private var checksum: (any ChecksumStream)?

    private var files: FileSystem { folder.files }
    private var isTemporary: Bool { names.card == nil }

    /// Opens the directory, and refuses early what would be refused in the end.
    init(
        _ destination: DownloadDestination, source: String, options: DownloadOptions, files: FileSystem
    ) throws(FileOperationError) {
        self.destination = destination
        self.options = options
        let place: URL
        switch destination.place {
        case .temporary:
            names = DownloadNames()
            place = FileManager.default.temporaryDirectory.appendingPathComponent(names.part)
        case .file(let url):
            names = DownloadNames(identity: "file \(url.lastPathComponent)")
            place = url
        case .folder(let url):
            names = DownloadNames(identity: "source \(source)")
            place = url.appendingPathComponent(names.part)
        }
        let makesFolders = options.createsDirectories && destination != .temporary
        folder = try PreparedFolder(of: place, makingFolders: makesFolders, action: .writing, files: files)
        do throws(FileOperationError) {
            if case .file = destination.place { try check(folder.name.description) }
            try openPart()
        } catch {
            folder.discard()
            throw error
        }
    }

    deinit {
        if isTemporary { discard() }
    }

    /// What is there of the file, as far as it can be trusted.
    var part: DownloadPart? { card.map { DownloadPart(card: $0, length: length) } }

    /// The bytes that may still be written to the volume.
    func freeBytes() -> Int64 { (try? files.freeBytes(of: folder.folder).get()) ?? .max }

    /// Refuses a name that is taken by something that is to stay.
    func check(_ name: String) throws(FileOperationError) {
        guard case .success(let status) = files.status(of: folder.entry(name)) else { return }
        guard options.existingItem == .replace else { throw folder.error(.alreadyExists) }
        guard status.kind != .directory else { throw folder.error(.isDirectory) }
        guard status.kind == .regular || status.kind == .symbolicLink else { throw folder.error(.unsupportedKind) }
    }

    private func openPart() throws(FileOperationError) {
        let entry = folder.entry(names.part)
        for _ in 0..<Self.attempts {
            switch files.openToAppend(entry, makingItWith: nil) {
            case .success(let file):
                try claim(file)
                let status = try folder.get(files.status(of: file))
                // Who had it before may have put it in its place, or thrown it away, meanwhile.
                guard case .success(let named) = files.status(of: entry), named.identity == status.identity else {
                    continue
                }
                guard status.kind == .regular, status.linkCount == 1 else { break }
                self.file = file
                card = readCard()
                length = card?.trusted(of: status.size, boot: SystemBoot.identity) ?? 0
                return
            case .failure(SystemError(ENOENT)):
                let made = files.openToAppend(entry, makingItWith: isTemporary ? 0o600 : options.permissions)
                if case .failure(SystemError(EEXIST)) = made { continue }
                let file = try folder.get(made)
                try claim(file)
                self.file = file
                return
            case .failure(SystemError(ELOOP)): break
            case .failure(let error): _ = try folder.get(Result<Void, SystemError>.failure(error))
            }
            try folder.get(files.remove(entry, isDirectory: false).ignoringAbsence())
        }
        throw folder.error(.busy)
    }

    private func claim(_ file: OpenFile) throws(FileOperationError) {
        let result = files.claim(file)
        if case .failure(SystemError(EWOULDBLOCK)) = result { throw folder.error(.busy) }
        try folder.get(result)
    }
}

// Writing
extension DownloadStore {
    /// Empties the part, for another version of the file or the first.
    func begin(_ card: DownloadCard) throws(FileOperationError) {
        let file = try opened()
        // The old card must never be found beside new bytes, not even after a power cut: it goes first, and for certain.
        if self.card != nil {
            try removeCard()
            try folder.synchronize()
        }
        try folder.get(files.truncate(file, to: 0))
        length = 0
        checksum = options.checksum?.algorithm.makeStream()
        try note(card, isDurable: false)
    }

    /// Cuts the part off where the server goes on.
    func goOn(from offset: Int64, _ card: DownloadCard) throws(FileOperationError) {
        if checksum == nil || offset != length {
            checksum = nil
            try folder.get(files.truncate(try opened(), to: offset))
        }
        length = offset
        var card = card
        card.synchronized = min(card.synchronized, offset)
        try note(card, isDurable: false)
    }

    /// Adds bytes to the part.
    func write(_ bytes: UnsafeRawBufferPointer) throws(FileOperationError) {
        let file = try opened()
        var rest = bytes
        while !rest.isEmpty {
            let count = try folder.get(files.write(file, rest))
            // A file that takes nothing, and says that this is no failure, would be written to for ever.
            guard count > 0 else { throw folder.error(.ioFailed) }
            length += Int64(count)
            checksum?.update(UnsafeRawBufferPointer(rebasing: rest[..<count]))
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
        }
    }

    /// Brings the part to the disk, and then the card that says so.
    func checkpoint() throws(FileOperationError) {
        guard var card, card.synchronized < length, !isTemporary else { return }
        try folder.get(files.synchronize(try opened()))
        card.synchronized = length
        try note(card, isDurable: true)
    }

    /// Keeps the card, on the disk only where somebody may go on with the part.
    private func note(_ card: DownloadCard, isDurable: Bool) throws(FileOperationError) {
        var card = card
        card.boot = SystemBoot.identity
        self.card = card
        guard let name = names.card, card.validator != nil, options.keepsPart else { return }
        guard let text = try? card.text() else { throw folder.error(.ioFailed) }
        let temporary = folder.entry(name + Self.newSuffix)
        // Left behind by a program that was killed; nobody else has the claim.
        try folder.get(files.remove(temporary, isDirectory: false).ignoringAbsence())
        do throws(FileOperationError) {
            let file = try folder.get(files.createFile(temporary, permissions: 0o600))
            let count = try folder.get(text.withUnsafeBytes { files.write(file, $0) })
            guard count == text.count else { throw folder.error(.noSpace) }
            if isDurable { try folder.get(files.synchronize(file)) }
            try folder.get(files.close(file))
            try folder.get(files.rename(temporary, to: folder.entry(name)))
        } catch {
            _ = files.remove(temporary, isDirectory: false)
            throw error
        }
    }

    private func opened() throws(FileOperationError) -> OpenFile {
        guard let file else { throw folder.error(.notFound) }
        return file
    }

    private func readCard() -> DownloadCard? {
        guard let name = names.card,
            let file = try? files.open(folder.entry(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK).get(),
            let status = try? files.status(of: file).get(), status.kind == .regular,
            status.size <= Self.largestCard
        else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(status.size))
        let result = bytes.withUnsafeMutableBytes { files.read(file, into: $0, at: 0) }
        guard case .success(bytes.count) = result else { return nil }
        return DownloadCard(text: bytes)
    }

    private func removeCard() throws(FileOperationError) {
        card = nil
        guard let name = names.card else { return }
        try folder.get(files.remove(folder.entry(name), isDirectory: false).ignoringAbsence())
        // There is one only where a program was killed while it wrote it.
        _ = files.remove(folder.entry(name + Self.newSuffix), isDirectory: false)
    }
}

// Ending
extension DownloadStore {
    /// The checksum of the whole part; reads again what did not come by.
    func takeChecksum(_ algorithm: ChecksumAlgorithm) throws(FileOperationError) -> [UInt8] {
        if var checksum { return checksum.finish() }
        let file = try opened()
        var stream = algorithm.makeStream()
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.chunkSize, alignment: 64)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while offset < length {
            let count = try folder.get(files.read(file, into: buffer, at: offset))
            guard count > 0 else { throw folder.error(.changedMeanwhile) }
            stream.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            offset += Int64(count)
        }
        return stream.finish()
    }

    /// Puts the part in its place under a name, in one step, and returns where it is.
    ///
    /// A temporary file is in its place already, and somebody else's from now on.
    func publish(as given: String?) throws(FileOperationError) -> URL {
        let file = try opened()
        let name: String
        switch destination.place {
        case .temporary:
            try folder.get(files.close(file))
            self.file = nil
            return FileManager.default.temporaryDirectory.appendingPathComponent(names.part)
        case .file: name = folder.name.description
        case .folder: name = given ?? "download"
        }
        let (entry, target) = (folder.entry(names.part), folder.entry(name))
        // After a failure the system may have forgotten what it did not write: no second try, the part is lost.
        if options.isDurable { try folder.get(files.synchronize(file)) }
        guard isInPlace(file) else { throw folder.error(.changedMeanwhile) }
        if options.existingItem == .replace {
            try check(name)
            try folder.get(files.rename(entry, to: target))
        } else {
            try folder.get(files.renameExclusively(entry, to: target, isDirectory: false))
        }
        self.file = nil
        // It is there now. A card that cannot be removed is beside no part, and harms nobody.
        try? removeCard()
        if options.isDurable { try folder.synchronize() }
        try folder.get(files.close(file))
        switch destination.place {
        case .file(let url): return url
        case .folder(let url): return url.appendingPathComponent(name)
        case .temporary: throw folder.error(.notSupported)
        }
    }

    /// Leaves the part for whoever goes on with it, or takes it away if nobody could.
    func leave() {
        guard !isTemporary, options.keepsPart, card?.validator != nil, length > 0 else { return discard() }
        do throws(FileOperationError) {
            try checkpoint()
        } catch {
            return discard()
        }
        file = nil
    }

    /// Removes all of it, and the directories that were made for it.
    func discard() {
        guard let file = exchange(&file, with: nil) else { return }
        // While it is still claimed: nobody else's is removed.
        try? removeCard()
        if isInPlace(file) { _ = files.remove(folder.entry(names.part), isDirectory: false) }
        _ = files.close(file)
        folder.discard()
    }

    /// Whether the part's name is still that of the part: somebody else's file is neither moved nor removed.
    private func isInPlace(_ file: OpenFile) -> Bool {
        guard case .success(let status) = files.status(of: file),
            case .success(let named) = files.status(of: folder.entry(names.part))
        else { return false }
        return named.identity == status.identity
    }
}

extension Result where Success == Void, Failure == SystemError {
    /// Success, if the failure is that there is nothing.
    fileprivate func ignoringAbsence() -> Self {
        if case .failure(SystemError(ENOENT)) = self { return .success(()) }
        return self
    }
}
