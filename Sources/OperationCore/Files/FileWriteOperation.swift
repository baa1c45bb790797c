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
