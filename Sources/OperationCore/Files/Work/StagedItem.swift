// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// Something that is made under a temporary name beside its destination and takes its place in one step at the end.
struct StagedItem {
    let destination: DestinationFolder
    /// The temporary name.
    let entry: FolderEntry
    /// What stands at the destination now.
    let existing: FileStatus?

    /// What is to become of it.
    struct Plan {
        let address: FileAddress
        let isDirectory: Bool
        let replaces: Bool
        let makesFolders: Bool
        let isDurable: Bool
        let place: FilePlace
    }

    /// Lets `build` make the item and then puts it into its place; whatever goes wrong, nothing is left behind.
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
                // Made by another operation, which failed and took it away again: nothing can have been built in it.
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
            of: plan.address, makingFolders: plan.makesFolders, at: plan.place, work: work)
        // Not made of the destination's name, which may be as long as names can be.
        let number = String(UInt64.random(in: .min ... .max), radix: 36)
        entry = FolderEntry(PathBytes(".operationkit-\(number).tmp"), in: destination.folder)
        do throws(FileInterruption) {
            existing = try Self.check(destination.entry, plan, files: work.files)
        } catch {
            destination.discard()
            throw error
        }
    }

    /// Finds out early what `publish` would find out in the end.
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
        // What went wrong before is what the user must know.
        try? remover.remove(entry)
        destination.discard()
    }
}
