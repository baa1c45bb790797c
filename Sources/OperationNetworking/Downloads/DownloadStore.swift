// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// The files of one download: the part, the card beside it, and the place where the file is to appear.
///
/// The part is claimed for as long as it is open (``DownloadClaim``), so that two downloads to one place cannot write into
/// each other. Until it is complete nobody else may read it.
///
/// Not Sendable on purpose: it stays on the queue of its download.
final class DownloadStore {
    private static let chunkSize = 256 << 10
    /// From so many bytes on a part is worth a card, to be gone on with after a kill: to make one takes longer than to ask
    /// for less anew, and most small downloads end without ever having had one.
    private static let worthCard: Int64 = 64 << 10

    private let place: DownloadPlace
    private let options: DownloadOptions
    private let cardFile: DownloadMetadataFile?
    private var file: OpenFile?
    /// The file in its place, even if not all that was to be done afterwards succeeded; nil before, and of a temporary file.
    private(set) var published: FileStatus?
    /// Whether there was no part before this one.
    private var isNew: Bool
    /// Whether there was a part when it was opened.
    let hadPart: Bool
    private var card: DownloadMetadata?
    /// Whether what the card says is not on the disk yet.
    private var owesCard = false
    /// Whether there may be a card on the disk.
    private var mayHaveCard = true
    /// How many bytes the part has.
    private(set) var length: Int64 = 0
    /// The checksum of all bytes of the part; nil if not all of them came by.
    private var checksum: (any ChecksumStream)?

    private var folder: PreparedFolder { place.folder }
    private var files: FileSystem { place.folder.files }
    private var isTemporary: Bool { place.isTemporary }

    /// Opens the directory, and refuses early what would be refused in the end.
    init(
        _ destination: DownloadDestination, source: String, options: DownloadOptions, files: FileSystem
    ) throws(FileOperationError) {
        self.options = options
        place = try DownloadPlace(destination, source: source, options: options, files: files)
        cardFile = DownloadMetadataFile(place.names, in: place.folder)
        let claim: DownloadClaim
        do throws(FileOperationError) {
            if place.isNamed { try place.check(for: nil) }
            claim = try DownloadClaim(place)
        } catch {
            place.folder.discard()
            throw error
        }
        file = claim.file
        isNew = claim.size == nil
        hadPart = claim.size != nil
        guard let size = claim.size else { return }
        card = cardFile?.read()
        length = card?.trusted(of: size, boot: SystemBoot.identity) ?? 0
    }

    deinit {
        if isTemporary { discard() }
    }

    /// What is there of the file, as far as it can be trusted.
    var part: DownloadPart? { card.map { DownloadPart(card: $0, length: length) } }

    /// The bytes that may still be written to the volume, where so many are wanted.
    func freeBytes(wanted: Int64) -> Int64 { (try? files.freeBytes(of: folder.folder, wanted: wanted).get()) ?? .max }

    /// Whether there is a part still, to be gone on with or thrown away.
    var hasPart: Bool { file != nil }

    /// Refuses a place that is taken by something that is to stay.
    func checkPlace(for card: DownloadMetadata?) throws(FileOperationError) { try place.check(for: card) }
}

// Writing
extension DownloadStore {
    /// Empties the part, for another version of the file or the first.
    func begin(_ card: DownloadMetadata) throws(FileOperationError) {
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
        note(card)
    }

    /// Cuts the part off where the server goes on.
    func goOn(from offset: Int64, _ card: DownloadMetadata) throws(FileOperationError) {
        if checksum == nil || offset != length {
            checksum = nil
            try folder.get(files.truncate(try opened(), to: offset))
        }
        length = offset
        var card = card
        card.synchronized = min(card.synchronized, offset)
        note(card)
        try writeCard(isDurable: false)
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
        if owesCard, length >= Self.worthCard { try writeCard(isDurable: false) }
    }

    /// Brings the part to the disk, and then the card that says so.
    func checkpoint() throws(FileOperationError) {
        guard var card, card.synchronized < length, !isTemporary else { return }
        try folder.get(files.synchronize(try opened()))
        card.synchronized = length
        note(card)
        try writeCard(isDurable: true)
    }

    /// Keeps the card, to be written where somebody may go on with the part.
    private func note(_ card: DownloadMetadata) {
        var card = card
        card.boot = SystemBoot.identity
        self.card = card
        owesCard = card.validator != nil && options.keepsPart && cardFile != nil
    }

    /// Writes the card that is owed.
    private func writeCard(isDurable: Bool) throws(FileOperationError) {
        guard owesCard, let card else { return }
        mayHaveCard = true
        try cardFile?.write(card, isDurable: isDurable)
        owesCard = false
    }

    private func opened() throws(FileOperationError) -> OpenFile {
        guard let file else { throw folder.error(.notFound) }
        return file
    }

    /// Returns whether there was one on the disk, of this download or of whichever.
    private func removeCard() throws(FileOperationError) -> Bool {
        (card, owesCard) = (nil, false)
        let wasThere = try cardFile?.remove() ?? false
        mayHaveCard = false
        return wasThere
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
        let name = place.name(card)
        guard !isTemporary else {
            try folder.get(files.close(file))
            self.file = nil
            return place.url(named: name)
        }
        guard place.isHere(file, place.part), try folder.get(files.status(of: file)).size == length else {
            throw folder.error(.changedMeanwhile)
        }
        try checkPlace(for: card)
        let permissions = try cardFile?.permissions(asked: options.permissions & 0o777)
        do throws(FileOperationError) {
            // At the last moment: with them, nobody might be able to go on with the part.
            try folder.get(files.setPermissions(permissions ?? DownloadClaim.permissions, of: file))
            try place.rename(to: folder.entry(name))
        } catch {
            _ = files.setPermissions(DownloadClaim.permissions, of: file)
            throw error
        }
        self.file = nil
        guard let status = place.status(of: file, at: folder.entry(name)) else {
            throw folder.error(.changedMeanwhile)
        }
        published = status
        forgetCard()
        if options.isDurable {
            // The permissions, that is: the bytes are there.
            try folder.get(files.synchronize(file))
            try folder.synchronize()
        }
        try folder.get(files.close(file))
        return place.url(named: name)
    }

    /// Takes away the card of a part that is in its place now.
    ///
    /// The claim went with the part, so whoever begins anew may have a card of their own by now. Only with a claim on what
    /// bears the part's name may it be removed; one that stays is removed before anything else is written.
    private func forgetCard() {
        (card, owesCard) = (nil, false)
        guard mayHaveCard,
            case .success(let mark) = files.openToAppend(place.part, makingItWith: DownloadClaim.permissions),
            case .success = files.claim(mark), place.isHere(mark, place.part)
        else { return }
        _ = try? removeCard()
        _ = files.remove(place.part, isDirectory: false)
    }

    /// Whether somebody may go on with the part who has this object, and nobody else.
    var isKeptHere: Bool { isTemporary && isWorthKeeping }

    private var isWorthKeeping: Bool { options.keepsPart && card?.validator != nil && length > 0 }

    /// Leaves the part for whoever goes on with it, brought to the disk or not, or takes it away if nobody could.
    func leave(isSynchronized: Bool) {
        guard !isTemporary, isWorthKeeping else { return discard() }
        do throws(FileOperationError) {
            if isSynchronized { try checkpoint() }
            try writeCard(isDurable: false)
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
        if place.isHere(file, place.part) { _ = files.remove(place.part, isDirectory: false) }
        _ = files.close(file)
        folder.discard()
    }
}

/// The card of a download on the disk.
///
/// All of it is done by whoever has the claim on the part.
struct DownloadMetadataFile {
    private static let largest = 64 << 10

    private let folder: PreparedFolder
    private let entry: FolderEntry
    /// Of a card that is being written.
    private let passing: FolderEntry

    /// The file under the names of a download; nil if it has none.
    init?(_ names: DownloadNames, in folder: PreparedFolder) {
        guard let name = names.card, let passing = names.passing else { return nil }
        self.folder = folder
        entry = folder.entry(name)
        self.passing = folder.entry(passing)
    }

    private var files: FileSystem { folder.files }

    /// What the card says; nil if there is none, or none that only this program's user can have written.
    func read() -> DownloadMetadata? {
        guard case .success(let (file, status)) = files.openTrusted(entry), status.size <= Self.largest else {
            return nil
        }
        var bytes = [UInt8](repeating: 0, count: Int(status.size))
        let result = bytes.withUnsafeMutableBytes { files.read(file, into: $0, at: 0) }
        guard case .success(bytes.count) = result else { return nil }
        return DownloadMetadata(text: bytes)
    }

    /// Puts a card in the place of the last one, in one step.
    func write(_ card: DownloadMetadata, isDurable: Bool) throws(FileOperationError) {
        guard let text = try? card.text() else { throw folder.error(.ioFailed) }
        try removePassing()
        do throws(FileOperationError) {
            let file = try folder.get(files.createFile(passing, permissions: 0o600))
            let count = try folder.get(text.withUnsafeBytes { files.write(file, $0) })
            guard count == text.count else { throw folder.error(.noSpace) }
            if isDurable { try folder.get(files.synchronize(file)) }
            try folder.get(files.close(file))
            try folder.get(files.rename(passing, to: entry))
        } catch {
            _ = files.remove(passing, isDirectory: false)
            throw error
        }
    }

    /// Takes away whatever bears the card's name, and returns whether something did.
    func remove() throws(FileOperationError) -> Bool {
        // There is one only where a program was killed while it wrote it.
        _ = files.remove(passing, isDirectory: false)
        let result = files.remove(entry, isDirectory: false)
        if case .failure(SystemError(ENOENT)) = result { return false }
        try folder.get(result)
        return true
    }

    /// What becomes of permissions of a new file here: the `umask` is taken off, and where the system does not tell it, a
    /// file must be made to see it.
    func permissions(asked: UInt16) throws(FileOperationError) -> UInt16 {
        if let permissions = files.permissions(asked: asked, in: folder.folder) { return permissions }
        try removePassing()
        let file = try folder.get(files.createFile(passing, permissions: asked))
        defer { _ = files.remove(passing, isDirectory: false) }
        return try folder.get(files.status(of: file)).permissions & 0o777
    }

    private func removePassing() throws(FileOperationError) {
        try folder.get(files.remove(passing, isDirectory: false).ignoringAbsence())
    }
}

/// Under which names the files of a download lie.
struct DownloadNames {
    /// The file that is being written.
    let part: String
    /// What is known of it; nil for a temporary file, with which nobody else goes on.
    let card: String?
    /// What is there for a moment only, such as a card that is being written.
    ///
    /// One that a killed program left is taken away.
    var passing: String? { card.map { $0 + ".new" } }

    /// Names that are found again by who downloads to the same place.
    init(identity: String) {
        // Not made of the destination's name, which may be as long as names can be.
        let key = Hexadecimal.lower(SHA256.checksum(of: identity.utf8, startingWith: SHA256()).prefix(16))
        part = ".operationkit-\(key).part"
        card = ".operationkit-\(key).card"
    }

    /// The name of a file that nobody finds again.
    init() {
        let random = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))
        part = "operationkit-\(String(random.0, radix: 36))\(String(random.1, radix: 36)).download"
        card = nil
    }

    /// Of what a part is: of a URL, unless a key says something else.
    static func source(of request: NetworkRequest, _ options: DownloadOptions) -> String {
        hash(options.resumeKey.map { "key \($0)" } ?? "url \(request.url.absoluteString)")
    }

    /// The hash of a text that is not to lie about on the disk.
    static func hash(_ text: String) -> String {
        Hexadecimal.lower(SHA256.checksum(of: text.utf8, startingWith: SHA256()))
    }
}

extension Result where Success == Void, Failure == SystemError {
    /// Success, if the failure is that there is nothing.
    func ignoringAbsence() -> Self {
        if case .failure(SystemError(ENOENT)) = self { return .success(()) }
        return self
    }
}

/// Since when the system runs: until it goes down, what a program wrote is not lost, even if the program is.
enum SystemBoot {
    /// A text that is another after each start of the system; nil where the system does not tell.
    static let identity: String? = {
        #if canImport(Darwin)
            var bytes = [CChar](repeating: 0, count: 64)
            var count = bytes.count
            guard sysctlbyname("kern.bootsessionuuid", &bytes, &count, nil, 0) == 0 else { return nil }
            return String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        #else
            let text = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
            let trimmed = text.map { $0.filter { !$0.isWhitespace } }
            return trimmed?.isEmpty == false ? trimmed : nil
        #endif
    }()
}
