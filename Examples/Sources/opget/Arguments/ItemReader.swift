// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// A reader for the files to download, from the command line and from lists.
struct ItemReader {
    private(set) var items: [DownloadItem] = []
    /// The errors as sentences, each with the position of the error.
    private(set) var problems: [String] = []
    /// The number of repeated entries, which are downloaded only once.
    private(set) var repeatedCount = 0
    private var indexes: [String: Int] = [:]
    private let request: @Sendable (URL) throws(NetworkError) -> NetworkRequest

    /// Creates a reader.
    ///
    /// - Parameter request: A closure that creates the request for a URL, or throws an error that describes the
    ///   problem.
    init(request: @escaping @Sendable (URL) throws(NetworkError) -> NetworkRequest) {
        self.request = request
    }

    mutating func read(_ settings: Settings) {
        for url in settings.urls { add(url, name: settings.output, checksum: settings.checksum, at: "") }
        for path in settings.lists { readList(path) }
    }

    private mutating func readList(_ path: String) {
        let shown = path == "-" ? "standard input" : path
        let data: Data?
        if path == "-" {
            data = FileHandle.standardInput.readDataToEndOfFile()
        } else {
            data = FileManager.default.contents(atPath: path)
        }
        guard let data else {
            return problems.append("The list \(shown) cannot be read. Check its path and permissions.")
        }
        read(list: String(decoding: data, as: UTF8.self), named: shown)
    }

    mutating func read(list: String, named shown: String) {
        let count = items.count + repeatedCount
        // Some editors write a byte order mark at the start of a file.
        let list = list.hasPrefix("\u{FEFF}") ? String(list.dropFirst()) : list
        // Splitting at bytes is several times faster than splitting at characters. The `\r` of a line break is space.
        let newline = UInt8(ascii: "\n")
        for (number, line) in list.utf8.split(separator: newline, omittingEmptySubsequences: false).enumerated() {
            let blanks = 0x09...0x0D as ClosedRange<UInt8>
            let words = line.split { $0 == UInt8(ascii: " ") || blanks.contains($0) }.map { String(Substring($0)) }
            guard let url = words.first, !url.hasPrefix("#") else { continue }
            let place = "\(shown), line \(number + 1): "
            var (name, checksum): (String?, FileChecksum?)
            for word in words.dropFirst() {
                let halves = word.split(separator: "=", maxSplits: 1).map(String.init)
                if halves.count == 2, halves[0] == "out" {
                    if name != nil { problems.append("\(place)There is more than one name. Keep only one.") }
                    name = checkedName(halves[1], place)
                } else if halves.count == 2, let sum = SettingsReader.checksum(halves[0], halves[1]) {
                    if checksum != nil { problems.append("\(place)There is more than one checksum. Keep only one.") }
                    checksum = sum
                } else {
                    let shown = DownloadItem.shown(word)
                    problems.append("\(place)'\(shown)' is neither out=NAME nor a checksum such as sha256=HEX.")
                }
            }
            add(url, name: name, checksum: checksum, at: place)
        }
        if items.count + repeatedCount == count, problems.isEmpty { problems.append("There is no URL in \(shown).") }
    }

    /// Returns the name of a file if it is inside the directory, because a list can come from an untrusted source.
    private mutating func checkedName(_ name: String, _ place: String) -> String? {
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        let isHarmless = parts.allSatisfy { !$0.isEmpty && $0 != ".." && $0 != "." && !$0.hasPrefix("~") }
        let hasControls = name.unicodeScalars.contains { $0.properties.generalCategory == .control }
        if isHarmless, !hasControls { return name }
        problems.append(
            "\(place)'out=\(name)' must name a file in the directory, without '..', '~' and control characters.")
        return nil
    }

    private mutating func add(_ text: String, name: String?, checksum: FileChecksum?, at place: String) {
        var shown: String { DownloadItem.shown(text) }
        guard let url = URL(string: text) else {
            return problems.append(
                "\(place)'\(shown)' is not a URL. Include the scheme, and percent-encode special characters.")
        }
        do throws(NetworkError) {
            // The first request has shown that the other parts are valid, which are the same for all requests.
            _ = try items.isEmpty ? request(url) : NetworkRequest(url: url)
        } catch {
            return problems.append("\(place)'\(shown)': \(error.message)")
        }
        let key = "\(url.absoluteString) \(name ?? "")"
        if let index = indexes[key] {
            // A checksum applies to all entries with the same URL and name.
            let known = items[index].checksum ?? checksum
            guard checksum == nil || checksum == known else {
                let problem = "'\(shown)' occurs twice with different checksums. Remove one of them."
                return problems.append(place + problem)
            }
            let old = items[index]
            items[index] = DownloadItem(index: index, text: old.text, url: old.url, name: old.name, checksum: known)
            repeatedCount += 1
            return
        }
        indexes[key] = items.count
        items.append(DownloadItem(index: items.count, text: text, url: url, name: name, checksum: checksum))
    }
}
