// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Writes data to a file, in one step: whoever reads it meanwhile, and whatever goes wrong, it is there whole or not at
/// all. (But for ``FileWriteOptions/Mode/inPlace``, which says what it does not promise.)
///
/// ```swift
/// let url = FileManager.default.temporaryDirectory.appendingPathComponent("greeting-\(UUID()).txt")
/// let write = FileWriteOperation(Data("Hello".utf8), to: url)
/// print(try await write.run().lastPathComponent)
/// ```
///
/// The data is written under a temporary name (`.operationkit-….tmp`) in the destination's directory and then renamed.
/// If the destination is a symbolic link, the new file replaces the link, and the target of the link stays as it is. To
/// write through the link, use ``FileWriteOptions/Mode/inPlace``, or resolve the URL first.
///
/// Cancelled before the renaming, the operation leaves nothing behind. A cancellation that comes later than that finds
/// the file written.
public final class FileWriteOperation: FileOperation<URL>, @unchecked Sendable {
    // Sendable: the data is behind its lock.

    /// The file.
    ///
    /// It is the operation's result, too.
    public let url: URL
    /// How it is written.
    public let options: FileWriteOptions
    private let content: Locked<Data>

    /// Makes an operation that writes a file.
    ///
    /// The data may also be set later, by what it depends on.
    public init(_ data: Data = Data(), to url: URL, options: FileWriteOptions = FileWriteOptions()) {
        content = Locked(data)
        self.url = url
        self.options = options
        super.init()
    }

    /// What is written.
    ///
    /// Once the operation began a change has no effect; when it ended, the data is let go of.
    public var data: Data {
        get { content.withLock { $0 } }
        set {
            let old = content.withLock { exchange(&$0, with: newValue) }
            withExtendedLifetime(old) {}
        }
    }

    override func perform(_ work: FileWork) throws(FileInterruption) -> URL {
        let address = try FileAddress(url, for: .writing)
        let data = data
        // A cancellation lets go of the data. Had it done so just before, it would be seen here, before a file is emptied.
        try work.checkCancellation()
        work.expect(bytes: Int64(data.count))
        if options.mode == .inPlace {
            try FileOverwriting(address: address, options: options, work: work).write(data)
        } else {
            try stage(data, at: address, work)
        }
        return url
    }

    private func stage(_ data: Data, at address: FileAddress, _ work: FileWork) throws(FileInterruption) {
        let place = FilePlace(.writing, address.description)
        let plan = StagedItem.Plan(
            address: address, isDirectory: false, replaces: options.mode == .replacing,
            makesFolders: options.createsDirectories, isDurable: options.isDurable, place: place)
        try StagedItem.make(plan, work: work) { (item: StagedItem) throws(FileInterruption) in
            // From the first byte on nobody may read it who could not read what it replaces.
            let inherited = item.existing.flatMap { $0.kind == .regular ? $0.permissions & 0o777 : nil }
            let permissions = options.permissions.map { $0 & 0o777 } ?? inherited ?? 0o644
            let file = try work.files.createFile(item.entry, permissions: permissions).get(at: place)
            let output = FileSink(work: work, file: file, place: place)
            try output.write(data)
            if let inherited, options.permissions == nil {
                try work.files.setPermissions(inherited, of: file).get(at: place)
            }
            try output.finish(isDurable: options.isDurable)
        }
    }

    package override func releaseBody() {
        super.releaseBody()
        data = Data()
    }
}

/// How a file is written.
public struct FileWriteOptions: Sendable, Hashable {
    /// How the new content comes to stand at the destination: ``Mode/replacing``.
    public var mode: Mode

    /// Whether directories that are missing on the way to the destination are made: false.
    public var createsDirectories: Bool

    /// The permission bits, less the process's `umask`.
    ///
    /// Nil, as from the start: those of the file that is replaced, else 0o644 less the `umask`. Choose 0o600 for secrets.
    public var permissions: UInt16?

    /// Whether the file and its name are brought to the disk before the operation succeeds, to survive a power cut: true.
    public var isDurable: Bool

    /// Options with these values.
    public init(
        mode: Mode = .replacing, createsDirectories: Bool = false, permissions: UInt16? = nil, isDurable: Bool = true
    ) {
        self.mode = mode
        self.createsDirectories = createsDirectories
        self.permissions = permissions
        self.isDurable = isDurable
    }

    /// The default values, but for a file that must not exist yet.
    public static let creatingNew = FileWriteOptions(mode: .creatingNew)

    /// How new content comes to stand at the destination.
    public struct Mode: Hashable, Sendable {
        private let name: String

        /// In one step: readers see the old content or the new, and a failure leaves the old.
        ///
        /// A symbolic link at the destination is replaced itself; what it leads to stays as it is.
        public static let replacing = Mode(name: "replacing")

        /// In one step, and only if there is nothing yet: of many that try at once, one succeeds.
        public static let creatingNew = Mode(name: "creatingNew")

        /// Into the file that is there, links followed: for devices, and files whose identity must stay.
        ///
        /// Not atomic: the old content is gone at once, and a failure leaves a part of the new. Only a file that this
        /// operation made is taken away again.
        public static let inPlace = Mode(name: "inPlace")
    }
}

/// A file that is being written.
struct FileSink {
    let work: FileWork
    let file: OpenFile
    let place: FilePlace
    /// Whether it may at times take nothing.
    var isDevice = false

    /// Writes all of the bytes, in as many calls as the system likes, and counts them as progress.
    func write(_ bytes: UnsafeRawBufferPointer) throws(FileInterruption) {
        var rest = bytes
        while !rest.isEmpty {
            let result = try work.patiently(isDevice ? file : nil, isWriting: true) { work.files.write(file, rest) }
            let written = try result.get(at: place)
            // A file that takes nothing, and says that this is no failure, would be written to for ever.
            guard written > 0 else { throw .failed(place.error(for: SystemError(EIO))) }
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(written))
            work.advance(bytes: written)
        }
    }

    /// Writes chunk by chunk, and looks before each whether the operation was cancelled.
    func write(_ data: Data) throws(FileInterruption) {
        var start = data.startIndex
        while start < data.endIndex {
            try work.checkCancellation()
            let end = data.index(start, offsetBy: FileWork.chunkSize, limitedBy: data.endIndex) ?? data.endIndex
            let result = data[start..<end].withUnsafeBytes { bytes in
                Result { () throws(FileInterruption) in try write(bytes) }
            }
            try result.get()
            start = end
        }
    }

    /// Brings what was written to the disk, if so wished, and closes the file.
    func finish(isDurable: Bool) throws(FileInterruption) {
        // After a failure the system may have forgotten what it did not write, and would claim success the next time:
        // no second try.
        if isDurable { try work.files.synchronize(file).get(at: place) }
        try work.files.close(file).get(at: place)
    }
}

/// Writes into a file or device that is there, or makes the file.
struct FileOverwriting {
    private let destination: DestinationFolder
    private let output: FileSink
    /// Which file this made; nil if it was there.
    private let made: FileStatus.Identity?
    private let isDurable: Bool
    private let work: FileWork

    init(address: FileAddress, options: FileWriteOptions, work: FileWork) throws(FileInterruption) {
        let place = FilePlace(.writing, address.description)
        self.work = work
        isDurable = options.isDurable
        let permissions = (options.permissions ?? 0o644) & 0o777
        let (destination, opened) = try DestinationFolder.enter(
            of: address, makingFolders: options.createsDirectories, at: place, work: work
        ) { Self.open($0.entry, permissions: permissions, files: work.files) }
        self.destination = destination
        do throws(FileInterruption) {
            let (file, isNew) = try opened.get(at: place)
            let status = try work.files.status(of: file).get(at: place)
            // Nobody promises to read what is put into a pipe.
            guard [.regular, .device].contains(status.kind) else { throw .failed(place.error(.unsupportedKind)) }
            made = isNew ? status.identity : nil
            output = FileSink(work: work, file: file, place: place, isDevice: status.kind == .device)
        } catch {
            if case .success((_, true)) = opened { _ = work.files.remove(destination.entry, isDirectory: false) }
            destination.discard()
            throw error
        }
    }

    func write(_ data: Data) throws(FileInterruption) {
        do throws(FileInterruption) {
            try output.write(data)
            try output.finish(isDurable: isDurable)
        } catch {
            discard()
            throw error
        }
        if isDurable { try destination.synchronize() }
    }

    /// Takes away what this made, but not what others put in its place.
    private func discard() {
        if let made, case .success(let status) = work.files.status(of: destination.entry), status.identity == made {
            _ = work.files.remove(destination.entry, isDirectory: false)
        }
        destination.discard()
    }

    /// Opens what is there or makes it, and says which, whatever others do at the same moment.
    private static func open(
        _ entry: FolderEntry, permissions: UInt16, files: FileSystem
    ) -> Result<(OpenFile, isNew: Bool), SystemError> {
        for _ in 0..<DestinationFolder.attempts {
            let made = files.createFile(entry, permissions: permissions)
            guard case .failure(SystemError(EEXIST)) = made else { return made.map { ($0, true) } }
            let opened = files.open(entry, O_WRONLY | O_TRUNC | O_NONBLOCK)
            guard case .failure(SystemError(ENOENT)) = opened else { return opened.map { ($0, false) } }
        }
        return .failure(SystemError(ENOENT))
    }
}
