// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// One file to be downloaded.
struct DownloadItem: Sendable {
    /// Its place in the order in which the files were given, from 0.
    let index: Int
    /// The URL as it was given.
    let text: String
    let url: URL
    /// The name of the file beneath the directory, if it was given.
    var name: String?
    var checksum: FileChecksum?

    /// The URL as the library shows it: without user, password and values of its query, any of which may be a secret.
    var shownURL: String { RequestSummary(method: "GET", url: url).url }

    /// What was given as a URL, and may be none, without what may be a secret in it.
    static func shown(_ text: String) -> String {
        var text = text[..<(text.firstIndex { "?#".contains($0) } ?? text.endIndex)]
        if let sign = text.lastIndex(of: "@") {
            let start = text.range(of: "//")?.upperBound ?? text.startIndex
            if start <= sign { text.replaceSubrange(start...sign, with: "***@") }
        }
        return String(text)
    }

    /// What it is called until its response says more.
    var shownName: String { name ?? nameOfURL }

    /// The last part of the URL, made fit for a file.
    var nameOfURL: String { DownloadFileName.name(for: ResponseHead(url: url, status: 200)) }
}
