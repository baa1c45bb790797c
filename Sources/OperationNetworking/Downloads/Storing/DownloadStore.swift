// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The files of one download: the part, the card beside it, and the place where the file is to appear.
///
/// Whatever stands under the part's name and is no plain file of one name (a link that somebody laid there, say), or may
/// have been written by another user, is taken away and never written through. The part is claimed for as long as it is
/// open, so that two downloads to one place cannot write into each other. Until it is complete nobody else may read it.
///
/// Not Sendable on purpose: it stays on the queue of its download.
final class DownloadStore {
    private static let attempts = 64
    /// Of a part: its owner's alone.
    private static let permissions: UInt16 = 0o600
    private static let chunkSize = 256 << 10

    private let folder: PreparedFolder
    private let destination: DownloadDestination
    private let options: DownloadOptions
    private let names: DownloadNames
    /// What would be written to, if it were not written beside it; of a download into a folder the part, for only the
    /// response says the name.
    private let place: URL
    private let cardFile: DownloadCardFile?
    private var file: OpenFile?
    /// Whether the file is in its place, even if not all that was to be done afterwards succeeded.
    private(set) var isPublished = false
    /// Whether there was no part before this one.
    private var isNew = false
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
        switch destination.place {
        case .temporary(let folder):
            names = DownloadNames()
            place = (folder ?? FileManager.default.temporaryDirectory).appendingPathComponent(names.part)
        case .file(let url):
            names = DownloadNames(identity: "file \(url.lastPathComponent)")
            place = url
        case .folder(let url):
            names = DownloadNames(identity: "source \(source)")
            place = url.appendingPathComponent(names.part)
        }
        let makesFolders = options.createsDirectories && !destination.isTemporary
        folder = try PreparedFolder(of: place, makingFolders: makesFolders, action: .writing, files: files)
        cardFile = DownloadCardFile(names, in: folder)
        do throws(FileOperationError) {
            if case .file = destination.place { try checkPlace(for: nil) }
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

    /// Whether there is a part still, to be gone on with or thrown away.
    var hasPart: Bool { file != nil }

    /// Refuses a place that is taken by something that is to stay.
    func checkPlace(for card: DownloadCard?) throws(FileOperationError) {
        guard !isTemporary, case .success(let status) = files.status(of: folder.entry(placeName(card))) else { return }
        guard options.existingItem == .replace else { throw folder.error(.alreadyExists) }
        guard status.kind != .directory else { throw folder.error(.isDirectory) }
        guard status.kind == .regular || status.kind == .symbolicLink else { throw folder.error(.unsupportedKind) }
    }

    /// The name under which the file is to appear: one plain name, whatever the card says.
    private func placeName(_ card: DownloadCard?) -> String {
        guard case .folder = destination.place else { return folder.name.description }
        let name = DownloadFileName.cleaned(card?.fileName ?? "")
        return name.isEmpty ? "download" : name
    }

    private func openPart() throws(FileOperationError) {
        let entry = folder.entry(names.part)
        for _ in 0..<Self.attempts {
            switch files.openToAppend(entry, makingItWith: nil) {
            case .success(let file):
                guard let status = try take(file) else { continue }
                if status.kind == .regular, status.linkCount == 1, status.isOnlyOurs {
                    return try goOn(with: file, status)
                }
            case .failure(SystemError(ENOENT)):
                let made = files.openToAppend(entry, makingItWith: Self.permissions)
                if case .failure(SystemError(EEXIST)) = made { continue }
                let file = try folder.get(made)
                guard try take(file) != nil else { continue }
                self.file = file
                isNew = true
                return
            // A link, or a socket.
            case .failure(SystemError(ELOOP)), .failure(SystemError(ENXIO)): break
            // A part to which its owner may not write, because of a kill just before it took its place.
            case .failure(SystemError(EACCES)) where isOurs(entry): break
            case .failure(let error): _ = try folder.get(Result<Void, SystemError>.failure(error))
            }
            try folder.get(files.remove(entry, isDirectory: false).ignoringAbsence())
        }
        throw folder.error(.busy)
    }

    /// Claims an open file; nil if it is not that of the part's name any more.
    ///
    /// Who had the claim before may have put it in its place, or thrown it away: even one that was just made.
    private func take(_ file: OpenFile) throws(FileOperationError) -> FileStatus? {
        try claim(file)
        let status = try folder.get(files.status(of: file))
        guard case .success(let named) = files.status(of: folder.entry(names.part)), named.identity == status.identity
        else { return nil }
        return status
    }

    private func isOurs(_ entry: FolderEntry) -> Bool {
        guard case .success(let status) = files.status(of: entry) else { return false }
        return status.isOnlyOurs
    }

    private func goOn(with file: OpenFile, _ status: FileStatus) throws(FileOperationError) {
        if status.permissions != Self.permissions {
            // Who had it before may have been killed when it was about to take its place.
            try folder.get(files.setPermissions(Self.permissions, of: file))
        }
        self.file = file
        card = cardFile?.read()
        length = card?.trusted(of: status.size, boot: SystemBoot.identity) ?? 0
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
        // No card may ever be found beside bytes of which it does not speak, not even after a power cut: whatever bears
        // its name goes first, and for certain. Only beside a new part one that is gone cannot come back, for then the
        // part itself would not be there.
        let mayComeBack = !isNew && !isTemporary
        if try removeCard() || mayComeBack { try folder.synchronize() }
        isNew = false
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
        guard card.validator != nil, options.keepsPart else { return }
        try cardFile?.write(card, isDurable: isDurable)
    }

    private func opened() throws(FileOperationError) -> OpenFile {
        guard let file else { throw folder.error(.notFound) }
        return file
    }

    /// Returns whether there was one on the disk, of this download or of whichever.
    private func removeCard() throws(FileOperationError) -> Bool {
        card = nil
        return try cardFile?.remove() ?? false
    }
}

// Ending
extension DownloadStore {
    /// The checksum of the whole part, of which is read again what did not come by; nil if it was cancelled meanwhile.
    func takeChecksum(
        _ algorithm: ChecksumAlgorithm, unless cancellation: DownloadCancellation
    ) throws(FileOperationError) -> [UInt8]? {
        if var checksum { return checksum.finish() }
        let file = try opened()
        var stream = algorithm.makeStream()
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.chunkSize, alignment: 64)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while offset < length {
            if cancellation.isSet { return nil }
            let count = try folder.get(files.read(file, into: buffer, at: offset))
            guard count > 0 else { throw folder.error(.changedMeanwhile) }
            stream.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            offset += Int64(count)
        }
        return stream.finish()
    }

    /// Brings the part to the disk, if that is to be certain.
    ///
    /// After a failure the system may have forgotten what it did not write: no second try, the part is lost.
    func secure() throws(FileOperationError) {
        if options.isDurable, !isTemporary { try folder.get(files.synchronize(try opened())) }
    }

    /// Puts the part in its place, in one step, and returns where it is.
    ///
    /// A temporary file is in its place already, and somebody else's from now on.
    func publish() throws(FileOperationError) -> URL {
        let file = try opened()
        let name = placeName(card)
        guard !isTemporary else {
            try folder.get(files.close(file))
            self.file = nil
            return place
        }
        guard isHere(file, folder.entry(names.part)), try folder.get(files.status(of: file)).size == length else {
            throw folder.error(.changedMeanwhile)
        }
        try checkPlace(for: card)
        let permissions = try cardFile?.permissions(asked: options.permissions & 0o777)
        do throws(FileOperationError) {
            // At the last moment: with them, nobody might be able to go on with the part.
            try folder.get(files.setPermissions(permissions ?? Self.permissions, of: file))
            try rename(to: folder.entry(name))
        } catch {
            _ = files.setPermissions(Self.permissions, of: file)
            throw error
        }
        self.file = nil
        guard isHere(file, folder.entry(name)) else { throw folder.error(.changedMeanwhile) }
        isPublished = true
        forgetCard()
        if options.isDurable {
            // The permissions, that is: the bytes are there.
            try folder.get(files.synchronize(file))
            try folder.synchronize()
        }
        try folder.get(files.close(file))
        guard case .folder(let url) = destination.place else { return place }
        return url.appendingPathComponent(name)
    }

    /// Takes away the card of a part that is in its place now.
    ///
    /// The claim went with the part, so whoever begins anew may have a card of their own by now. Only with a claim on what
    /// bears the part's name may it be removed; one that stays is removed before anything else is written.
    private func forgetCard() {
        card = nil
        let entry = folder.entry(names.part)
        guard case .success(let mark) = files.openToAppend(entry, makingItWith: Self.permissions),
            case .success = files.claim(mark), isHere(mark, entry)
        else { return }
        _ = try? removeCard()
        _ = files.remove(entry, isDirectory: false)
    }

    private func rename(to target: FolderEntry) throws(FileOperationError) {
        let entry = folder.entry(names.part)
        guard options.existingItem == .replace else {
            return try folder.get(files.renameExclusively(entry, to: target, isDirectory: false))
        }
        try folder.get(files.rename(entry, to: target))
    }

    /// Whether somebody may go on with the part who has this object, and nobody else.
    var isKeptHere: Bool { isTemporary && isWorthKeeping }

    private var isWorthKeeping: Bool { options.keepsPart && card?.validator != nil && length > 0 }

    /// Leaves the part for whoever goes on with it, or takes it away if nobody could.
    func leave() {
        guard !isTemporary, isWorthKeeping else { return discard() }
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
        _ = try? removeCard()
        if isHere(file, folder.entry(names.part)) { _ = files.remove(folder.entry(names.part), isDirectory: false) }
        _ = files.close(file)
        folder.discard()
    }

    /// Whether a name is that of the part: somebody else's file is neither moved nor removed.
    private func isHere(_ file: OpenFile, _ entry: FolderEntry) -> Bool {
        guard case .success(let status) = files.status(of: file), case .success(let named) = files.status(of: entry)
        else { return false }
        return named.identity == status.identity
    }
}
