// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// A file to download.
struct DownloadItem: Sendable {
    /// The index of the file in the order of the command line.
    let index: Int
    /// The URL as the user wrote it.
    let text: String
    let url: URL
    /// The name of the file in the directory, or nil if the user specified no name.
    var name: String?
    var checksum: FileChecksum?
    /// The last part of the URL, as a valid file name.
    let nameOfURL: String

    init(index: Int, text: String, url: URL, name: String? = nil, checksum: FileChecksum? = nil) {
        (self.index, self.text, self.url, self.name, self.checksum) = (index, text, url, name, checksum)
        nameOfURL = DownloadFileName.name(for: ResponseHead(url: url, status: 200))
    }

    /// The URL without the user name, password and query values, which can be secret.
    var shownURL: String { RequestSummary(method: "GET", url: url).url }

    /// Returns the text of an invalid or valid URL, without the parts that can be secret.
    static func shown(_ text: String) -> String {
        var text = text[..<(text.firstIndex { "?#".contains($0) } ?? text.endIndex)]
        if let sign = text.lastIndex(of: "@") {
            let start = text.range(of: "//")?.upperBound ?? text.startIndex
            if start <= sign { text.replaceSubrange(start...sign, with: "***@") }
        }
        return String(text)
    }

    /// The name to show until the response determines the name of the file.
    var shownName: String { name ?? nameOfURL }
}
