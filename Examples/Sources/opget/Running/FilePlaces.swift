// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import Synchronization

/// The destinations of the files in a run, and the items that own these destinations.
final class FilePlaces: Sendable {
    private struct State {
        /// The index of the item that owns each path.
        var claims: [String: Int] = [:]
        /// The paths of the files that this run has downloaded.
        var taken: Set<String> = []
    }

    let directory: URL
    private let settings: Settings
    private let state = Mutex(State())
    /// The names of the files that were in the directory before the run, if the run keeps or replaces such files.
    ///
    /// With `--continue`, the names are in lowercase. If the directory cannot be listed, the value is nil.
    private let before: Set<String>?
    /// Whether the directory may contain partial files of downloads in segments.
    let hasSegments: Bool

    init(_ settings: Settings) {
        self.settings = settings
        directory = URL(filePath: Self.absolute(settings.directory), directoryHint: .isDirectory)
        let names = Self.names(in: directory)
        switch settings.existing {
        case .fail: before = []
        case .skip: before = names.map { Set($0.map { $0.lowercased() }) }
        case .replace: before = names.map { Set($0) }
        }
        hasSegments = settings.segments > 1 || names?.contains { $0.hasPrefix(SegmentNames.prefix) } ?? true
    }

    /// Returns the names in a directory that might not exist, or nil if the directory cannot be listed.
    private static func names(in directory: URL) -> [String]? {
        guard FileManager.default.fileExists(atPath: directory.path) else { return [] }
        return try? FileManager.default.contentsOfDirectory(atPath: directory.path)
    }

    /// Returns an absolute path, so that a leading `~` does not mean the home directory.
    private static func absolute(_ path: String) -> String {
        if path.hasPrefix("/") { return path }
        let present = FileManager.default.currentDirectoryPath
        return path == "." ? present : "\(present)/\(path)"
    }

    // File names.

    /// Returns the destination of a file, or nil if the response determines the name of the file.
    func known(for item: DownloadItem) -> URL? {
        (item.name ?? (settings.usesRemoteName ? item.nameOfURL : nil)).map(place)
    }

    /// Returns the probable destination of a file before the server responds.
    func expected(for item: DownloadItem) -> URL { known(for: item) ?? place(item.nameOfURL) }

    /// Returns the destination of a file after the server has responded.
    func place(of item: DownloadItem, _ head: ResponseHead) -> URL {
        known(for: item) ?? place(DownloadFileName.name(for: head))
    }

    private func place(_ name: String) -> URL {
        if name.hasPrefix("/") { return URL(filePath: name, directoryHint: .notDirectory) }
        // The URL is not relative to the directory, because a name that begins with `~` would lead elsewhere.
        return URL(filePath: "\(directory.path)/\(name)", directoryHint: .notDirectory)
    }

    // Owners.

    /// Reserves a destination for an item, and returns false if another item owns the destination.
    func claim(_ place: URL, for item: DownloadItem) -> Bool {
        state.withLock { state in
            let holder = state.claims[place.path, default: item.index]
            state.claims[place.path] = holder
            return holder == item.index
        }
    }

    /// Records that this run has downloaded a file to a path.
    func take(_ path: String) { state.withLock { _ = $0.taken.insert(path) } }

    private func isTaken(_ place: URL) -> Bool { state.withLock { $0.taken.contains(place.path) } }

    /// Returns the names of a file's partial files in segments, or nil if there were none before the run.
    ///
    /// The program looks at the directory once, and not once for each file of a long list.
    func segments(of item: DownloadItem, at place: @autoclosure () -> URL) -> SegmentNames? {
        hasSegments || item.name?.contains("/") == true ? SegmentNames(for: place()) : nil
    }

    /// Returns whether an item exists at a path, even a link that leads nowhere.
    func isThere(_ place: URL) -> Bool {
        var status = stat()
        return lstat(place.path, &status) == 0
    }

    /// Returns whether a path leads to a regular file.
    func isFile(_ place: URL) -> Bool {
        var status = stat()
        return stat(place.path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    /// Returns whether the destination of an item contains a file that existed before the run.
    func isOld(_ place: URL, for item: DownloadItem) -> Bool {
        !isTaken(place) && wasThere(place, for: item) && isFile(place)
    }

    /// Returns whether the file at the destination of an item existed before the run.
    ///
    /// A file that appears during the run might belong to another URL, even if the file is not recorded as taken yet. A
    /// path in a list can lead to another directory, where each file belongs to only one item.
    ///
    /// With `--continue`, the method ignores the case of names, because some volumes ignore it. If the directory cannot
    /// be listed, the method returns true. With `--overwrite`, the method returns true only if the list contains
    /// exactly this name, so that no URL replaces the file of another URL.
    func wasThere(_ place: URL, for item: DownloadItem) -> Bool {
        if item.name?.contains("/") == true { return true }
        let name = place.lastPathComponent
        guard settings.existing == .skip else { return before?.contains(name) == true }
        return before?.contains(name.lowercased()) ?? true
    }

    // Results for items whose destination is not free.

    func resultOfUnchecked(_ place: URL, for item: DownloadItem) -> FileResult {
        if isTaken(place) { return .failed(.nameTwice) }
        guard isFile(place) else { return .failed(.notAFile(place.lastPathComponent)) }
        guard settings.existing == .skip else { return .failed(.exists(place.lastPathComponent)) }
        return wasThere(place, for: item) ? .skipped(path: place.path) : .failed(.nameTwice)
    }

    /// Returns the result for an existing file, which opget keeps only if its checksum matches.
    func resultOfExisting(_ item: DownloadItem, _ place: URL) async -> FileResult {
        let result = resultOfUnchecked(place, for: item)
        guard case .skipped = result, let expected = item.checksum else { return result }
        switch await checksum(of: place, expected.algorithm) {
        case .success(expected): return result
        case .success:
            return .failed(
                FileFailure(
                    .checksum, "checksumMismatch",
                    "The existing file does not have the expected \(expected.algorithm) checksum. "
                        + "Use --overwrite to replace it."))
        case .failure(let failure): return Task.isCancelled ? .stopped : .failed(failure)
        }
    }
}
