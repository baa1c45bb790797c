// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

/// A copy that appears at its destination in one step.
struct StagedCopy {
    let source: FileAddress
    let destination: FileAddress
    let options: FileTransferOptions
    let action: FileOperationError.Action
    let work: FileWork

    func make() throws(FileInterruption) {
        let place = FilePlace(action, source.description, otherPath: destination.description)
        let entry = try source.openEntry(at: place, files: work.files)
        let status = try work.files.status(of: entry).get(at: place)
        work.expect(bytes: status.kind == .regular ? status.size : nil)
        let plan = StagedItem.Plan(
            address: destination, isDirectory: status.kind == .directory, replaces: options.existingItem == .replace,
            makesFolders: options.createsDirectories, isDurable: options.isDurable,
            place: FilePlace(action, destination.description, otherPath: source.description))
        try StagedItem.make(plan, work: work) { (item: StagedItem) throws(FileInterruption) in
            var copier = TreeCopier(entry, to: item.entry, isDurable: options.isDurable, at: place, work: work)
            try copier?.copy()
        }
    }
}
