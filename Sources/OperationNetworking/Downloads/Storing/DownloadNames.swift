// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore

/// Under which names the files of a download lie.
struct DownloadNames {
    /// The file that is being written.
    let part: String
    /// What is known of it; nil for a temporary file, with which nobody else goes on.
    let card: String?
    /// What is there for a moment only, such as a card that is being written.
    ///
    /// One that a killed program left is taken away.
    var passing: String? { card.map { $0 + ".new" } }

    /// Names that are found again by who downloads to the same place.
    init(identity: String) {
        // Not made of the destination's name, which may be as long as names can be.
        let key = Hexadecimal.lower(SHA256.checksum(of: identity.utf8, startingWith: SHA256()).prefix(16))
        part = ".operationkit-\(key).part"
        card = ".operationkit-\(key).card"
    }

    /// The name of a file that nobody finds again.
    init() {
        let random = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))
        part = "operationkit-\(String(random.0, radix: 36))\(String(random.1, radix: 36)).download"
        card = nil
    }

    /// Of what a part is: of a URL, unless a key says something else.
    static func source(of request: NetworkRequest, _ options: DownloadOptions) -> String {
        hash(options.resumeKey.map { "key \($0)" } ?? "url \(request.url.absoluteString)")
    }

    /// The hash of a text that is not to lie about on the disk.
    static func hash(_ text: String) -> String {
        Hexadecimal.lower(SHA256.checksum(of: text.utf8, startingWith: SHA256()))
    }
}
