// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
@_spi(Subclassing) import OperationCore

/// An operation that writes data to a file atomically.
///
/// Other programs see either the complete new file or the previous state, even if the operation fails. However, an
/// operation with the mode ``FileWriteOptions/Mode/inPlace`` is not atomic.
///
/// ```swift
/// let url = FileManager.default.temporaryDirectory.appendingPathComponent(
///     "greeting-\(UUID()).txt")
/// let write = FileWriteOperation(Data("Hello".utf8), to: url)
/// print(try await write.run().lastPathComponent)
/// ```
///
/// The operation writes the data to a file with a temporary name (`.operationkit-….tmp`) in the destination's directory
/// and then renames the file. If the destination is a symbolic link, the new file replaces the link, and the target of
/// the link does not change. To write through the link, use ``FileWriteOptions/Mode/inPlace``, or resolve the URL
/// first.
///
/// If you cancel the operation before it renames the file, the operation removes the temporary file. If you cancel the
/// operation later, the destination may already contain the new file.
public final class FileWriteOperation: FileOperation<URL>, @unchecked Sendable {
    // Sendable: the data is protected by its lock.

    /// The URL of the file.
    ///
    /// This URL is also the result of the operation.
    public let url: URL
    /// The options for the write operation.
    package let options: FileWriteOptions
    private let content: Locked<Data>

    /// Creates an operation that writes a file.
    ///
    /// - Parameters:
    ///   - data: The data to write. The default is empty data. You can also set ``data`` later, for example with the
    ///     result of a dependency.
    ///   - url: The URL of the file.
    ///   - options: The options for the write operation. By default, the operation replaces an existing file.
    public init(_ data: Data = Data(), to url: URL, options: FileWriteOptions = FileWriteOptions()) {
        content = Locked(data)
        self.url = url
        self.options = options
        super.init()
    }

    /// The data to write.
    ///
    /// Set the data before the operation begins. Later changes have no effect. The operation releases the data when the
    /// operation ends.
    public var data: Data {
        get { content.withLock { $0 } }
        set {
            content.release { exchange(&$0, with: newValue) }
        }
    }

    override func perform(_ work: FileWork) throws(FileInterruption) -> URL {
        let address = try FileAddress(url, for: .writing)
        let data = data
        // A cancellation releases the data. If that happened just before, this check detects it before a file is
        // emptied.
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
            // No user who cannot read the replaced file may read the new file, even while it is written.
            let replaced = options.permissions == nil && item.existing?.kind == .regular ? item.existing : nil
            let permissions = options.permissions.map { $0 & 0o777 } ?? replaced?.permissionsForAnyGroup ?? 0o644
            let file = try work.files.createFile(item.entry, permissions: permissions).get(at: place)
            let output = FileSink(work: work, file: file, place: place)
            try output.write(data)
            if let replaced { try work.files.setAccess(of: file, from: replaced).get(at: place) }
            try output.finish(isDurable: options.isDurable)
        }
    }

    @_spi(Subclassing) public override func outcomeWasTold() {
        super.outcomeWasTold()
        data = Data()
    }
}

/// Options for an operation that writes a file.
public struct FileWriteOptions: Sendable, Hashable {
    /// The mode that determines how the new content replaces the old content.
    ///
    /// The default is ``Mode/replacing``.
    public var mode: Mode

    /// A Boolean value that indicates whether the operation creates the missing directories in the destination path.
    ///
    /// The default is `false`.
    public var createsDirectories: Bool

    /// The permission bits of the file, before the `umask` of the process is applied.
    ///
    /// The default is `nil`, which keeps the group and the permissions of a replaced file. If no file exists, the new
    /// file gets the permissions 0o644, minus the bits in the `umask`. For files that contain secrets, use 0o600. In
    /// the mode ``Mode/inPlace``, an existing file keeps its permissions, and this property applies only to a new file.
    ///
    /// If the process may not set the group of a replaced file, the new file keeps the group that the system gives to
    /// new files. The group and all other users then get only the permissions that the old group and all other users
    /// both had for the replaced file.
    public var permissions: UInt16?

    /// A Boolean value that indicates whether the operation flushes the file's content and its directory entry to the
    /// disk before it succeeds.
    ///
    /// The default is `true`, which protects the file against a power failure.
    public var isDurable: Bool

    /// Creates options for writing a file.
    ///
    /// - Parameters:
    ///   - mode: The mode that determines how the new content replaces the old content. The default is `replacing`.
    ///   - createsDirectories: A Boolean value that indicates whether the operation creates missing directories. The
    ///     default is `false`.
    ///   - permissions: The permission bits of the file. The default is `nil`, which keeps the group and the
    ///     permissions of a replaced file.
    ///   - isDurable: A Boolean value that indicates whether the operation flushes the file's content and its directory
    ///     entry to the disk before it succeeds. The default is `true`.
    public init(
        mode: Mode = .replacing, createsDirectories: Bool = false, permissions: UInt16? = nil, isDurable: Bool = true
    ) {
        self.mode = mode
        self.createsDirectories = createsDirectories
        self.permissions = permissions
        self.isDurable = isDurable
    }

    /// A mode that determines how new content replaces the content at the destination.
    public struct Mode: Hashable, Sendable {
        private let name: String

        /// The operation replaces the file atomically, so other programs see either the old or the new content.
        ///
        /// If the operation fails, the file keeps the old content. If the destination is a symbolic link, the new file
        /// replaces the link, and the target of the link does not change.
        public static let replacing = Mode(name: "replacing")

        /// The operation creates the file atomically, and fails with the code `alreadyExists` if an item exists at the
        /// destination.
        ///
        /// If several operations create the same file at the same time, at most one succeeds.
        public static let creatingNew = Mode(name: "creatingNew")

        /// The operation writes into the existing file instead of replacing it.
        ///
        /// Use this mode for devices, and for files that must keep their inode, for example because they have hard
        /// links. If no file exists, the operation creates one.
        ///
        /// This mode follows symbolic links and is not atomic. The operation deletes the old content when it opens the
        /// file, before it writes any new content. If the operation fails or is canceled, it removes a file that it
        /// created. However, a file that already existed can then be empty or contain only a part of the new content.
        ///
        /// If the target of a symbolic link does not exist, the operation creates the target, but not its directory.
        /// The operation does not remove this target if it fails, and does not flush its directory entry to the disk.
        public static let inPlace = Mode(name: "inPlace")
    }
}

/// A file that is being written.
struct FileSink {
    let work: FileWork
    let file: OpenFile
    let place: FilePlace
    /// Whether a write may have to wait because the file is a device.
    var isDevice = false

    /// Writes all bytes in as many calls as necessary, and counts them as progress.
    func write(_ bytes: UnsafeRawBufferPointer) throws(FileInterruption) {
        var rest = bytes
        while !rest.isEmpty {
            let result = try work.patiently(isDevice ? file : nil, isWriting: true) { work.files.write(file, rest) }
            let written = try result.get(at: place)
            // If the system writes no bytes and reports no error, the loop would never end.
            guard written > 0 else { throw .failed(place.error(for: SystemError(EIO))) }
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(written))
            work.advance(bytes: written)
        }
    }

    /// Writes the data in chunks, and checks before each chunk whether the operation was canceled.
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

    /// Writes the data to the disk if `isDurable` is `true`, and closes the file.
    func finish(isDurable: Bool) throws(FileInterruption) {
        // There is no second attempt. After a failure, the system may have discarded the data and would then report
        // success.
        if isDurable { try work.files.synchronize(file).get(at: place) }
        try work.files.close(file).get(at: place)
    }
}

/// Writes into an existing file or device, or creates the file.
struct FileOverwriting {
    private let destination: DestinationFolder
    private let output: FileSink
    /// The identity of the file that this value created, or `nil` if the file already existed.
    private let made: FileStatus.Identity?
    private let isDurable: Bool
    private let work: FileWork

    init(address: FileAddress, options: FileWriteOptions, work: FileWork) throws(FileInterruption) {
        let place = FilePlace(.writing, address.description)
        self.work = work
        isDurable = options.isDurable
        let permissions = (options.permissions ?? 0o644) & 0o777
        let (destination, opened) = try DestinationFolder.enter(
            of: address, makingFolders: options.createsDirectories, at: place, files: work.files
        ) { Self.open($0.entry, permissions: permissions, files: work.files) }
        self.destination = destination
        do throws(FileInterruption) {
            let (file, isNew) = try opened.get(at: place)
            let status = try work.files.status(of: file).get(at: place)
            // A pipe has no guarantee that another program reads the data.
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

    /// Removes the file that this value created, but not a file that replaced it.
    private func discard() {
        if let made, case .success(let status) = work.files.status(of: destination.entry), status.identity == made {
            _ = work.files.remove(destination.entry, isDirectory: false)
        }
        destination.discard()
    }

    /// Opens or creates the file and returns which of the two, even if other programs change the directory at the same
    /// time.
    private static func open(
        _ entry: FolderEntry, permissions: UInt16, files: FileSystem
    ) -> Result<(OpenFile, isNew: Bool), SystemError> {
        let flags = O_WRONLY | O_TRUNC | O_NONBLOCK
        for _ in 0..<DestinationFolder.attempts {
            let made = files.createFile(entry, permissions: permissions)
            guard case .failure(SystemError(EEXIST)) = made else { return made.map { ($0, true) } }
            let opened = files.open(entry, flags)
            guard case .failure(SystemError(ENOENT)) = opened else { return opened.map { ($0, false) } }
            // A symbolic link exists even if its target does not.
            guard case .success(let status) = files.status(of: entry), status.kind == .symbolicLink else { continue }
            return files.open(entry, flags | O_CREAT, permissions: permissions).map { ($0, false) }
        }
        return .failure(SystemError(ENOENT))
    }
}

/// An item that is created under a temporary name next to its destination and renamed at the end in one step.
struct StagedItem {
    let destination: DestinationFolder
    /// The entry with the temporary name.
    let entry: FolderEntry
    /// The status of the item at the destination, if there is one.
    let existing: FileStatus?

    /// The settings for the new item.
    struct Plan {
        let address: FileAddress
        let isDirectory: Bool
        let replaces: Bool
        let makesFolders: Bool
        let isDurable: Bool
        let place: FilePlace
    }

    /// Calls `build` to create the item and then renames it, and removes everything if an error occurs.
    static func make(
        _ plan: Plan, work: FileWork, build: (StagedItem) throws(FileInterruption) -> Void
    ) throws(FileInterruption) {
        var attempt = 1
        while true {
            let item = try StagedItem(plan, work: work)
            do throws(FileInterruption) {
                try build(item)
                try work.checkCancellation()
                try item.publish(plan, files: work.files)
            } catch {
                item.discard(plan, work: work)
                // Another operation created the directory, failed and removed it, so nothing can have been built in it.
                guard plan.makesFolders, attempt < DestinationFolder.attempts, item.destination.isGone else {
                    throw error
                }
                attempt += 1
                continue
            }
            if plan.isDurable { try item.destination.synchronize() }
            return
        }
    }

    private init(_ plan: Plan, work: FileWork) throws(FileInterruption) {
        destination = try DestinationFolder(
            of: plan.address, makingFolders: plan.makesFolders, at: plan.place, files: work.files)
        entry = destination.temporaryEntry()
        do throws(FileInterruption) {
            existing = try Self.check(destination.entry, plan, files: work.files)
        } catch {
            destination.discard()
            throw error
        }
    }

    /// Detects early the errors that `publish` would detect in the end.
    private static func check(
        _ entry: FolderEntry, _ plan: Plan, files: FileSystem
    ) throws(FileInterruption) -> FileStatus? {
        let result = files.status(of: entry)
        if case .failure(SystemError(ENOENT)) = result { return nil }
        let status = try result.get(at: plan.place)
        guard plan.replaces else { throw .failed(plan.place.error(for: SystemError(EEXIST))) }
        guard status.isReplaceable else { throw .failed(plan.place.error(.unsupportedKind)) }
        switch (status.kind, plan.isDirectory) {
        case (.directory, false): throw .failed(plan.place.error(for: SystemError(EISDIR)))
        case (.directory, true):
            let names = files.openFolder(entry).flatMap { files.names(in: $0) }
            let isEmpty = try names.get(at: plan.place).isEmpty
            guard isEmpty else { throw .failed(plan.place.error(for: SystemError(ENOTEMPTY))) }
        case (_, true): throw .failed(plan.place.error(for: SystemError(ENOTDIR)))
        case (_, false): break
        }
        return status
    }

    private func publish(_ plan: Plan, files: FileSystem) throws(FileInterruption) {
        let result =
            plan.replaces
            ? files.rename(entry, to: destination.entry)
            : files.renameExclusively(entry, to: destination.entry, isDirectory: plan.isDirectory)
        try result.get(at: plan.place)
    }

    private func discard(_ plan: Plan, work: FileWork) {
        var remover = TreeRemover(work: work.uncancellable(), root: plan.place, isOwn: true)
        // The earlier error is the one to report.
        try? remover.remove(entry)
        destination.discard()
    }
}
