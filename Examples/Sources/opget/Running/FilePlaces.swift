// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationFiles
import OperationNetworking
import Synchronization

/// Where the files of a run are to be, and whose each place is.
final class FilePlaces: Sendable {
    private struct State {
        /// Which item a place is kept for.
        var claims: [String: Int] = [:]
        /// Where files of this run lie by now.
        var taken: Set<String> = []
    }

    let directory: URL
    private let settings: Settings
    private let state = Mutex(State())
    /// What was in the directory before the run, where something is to be replaced.
    private let before: Set<String>

    init(_ settings: Settings) {
        self.settings = settings
        directory = URL(filePath: Self.absolute(settings.directory), directoryHint: .isDirectory)
        let isAsked = settings.existing == .replace
        before = Set(isAsked ? (try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? [] : [])
    }

    /// A path that means what it says: a name that begins with `~` is no home.
    private static func absolute(_ path: String) -> String {
        if path.hasPrefix("/") { return path }
        let present = FileManager.default.currentDirectoryPath
        return path == "." ? present : "\(present)/\(path)"
    }

    // Names.

    /// The place of a file, if it does not depend on what the server says.
    func known(for item: DownloadItem) -> URL? {
        (item.name ?? (settings.usesRemoteName ? item.nameOfURL : nil)).map(place)
    }

    /// The place of a file, as far as can be said without asking.
    func expected(for item: DownloadItem) -> URL { known(for: item) ?? place(item.nameOfURL) }

    /// The place of a file of which there is a response.
    func place(of item: DownloadItem, _ head: ResponseHead) -> URL {
        known(for: item) ?? place(DownloadFileName.name(for: head))
    }

    private func place(_ name: String) -> URL {
        if name.hasPrefix("/") { return URL(filePath: name, directoryHint: .notDirectory) }
        // Not relative to it, for what begins with `~` would lead elsewhere.
        return URL(filePath: "\(directory.path)/\(name)", directoryHint: .notDirectory)
    }

    // Whose they are.

    /// Keeps a place for an item; false if another one has it.
    func claim(_ place: URL, for item: DownloadItem) -> Bool {
        state.withLock { state in
            let holder = state.claims[place.path, default: item.index]
            state.claims[place.path] = holder
            return holder == item.index
        }
    }

    /// A file of this run came there.
    func take(_ path: String) { state.withLock { _ = $0.taken.insert(path) } }

    private func isTaken(_ place: URL) -> Bool { state.withLock { $0.taken.contains(place.path) } }

    func isThere(_ place: URL) -> Bool { FileManager.default.fileExists(atPath: place.path) }

    /// Whether something is there that this run did not bring.
    func isOld(_ place: URL) -> Bool { !isTaken(place) && isThere(place) }

    /// Whether it was in the directory before the run.
    func wasThere(_ place: URL) -> Bool { before.contains(place.lastPathComponent) }

    // What becomes of an item whose place is not free.

    func resultOfUnchecked(_ place: URL) -> FileResult {
        if isTaken(place) { return .failed(.nameTwice) }
        return settings.existing == .skip
            ? .skipped(path: place.path) : .failed(.exists(place.lastPathComponent))
    }

    /// A file that is left alone counts only if it is what it should be.
    func resultOfExisting(_ item: DownloadItem, _ place: URL) async -> FileResult {
        let result = resultOfUnchecked(place)
        guard case .skipped = result, let expected = item.checksum else { return result }
        switch await outcome(of: FileChecksumOperation(place, algorithm: expected.algorithm)) {
        case .success(expected): return result
        case .success:
            return .failed(
                FileFailure(
                    .checksum, "checksumMismatch",
                    "The existing file does not have the expected \(expected.algorithm) checksum. "
                        + "Use --overwrite to replace it."))
        case .failure(let failure): return .failed(failure)
        }
    }
}
