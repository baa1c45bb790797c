// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The programs that the tests against a real server start.
enum ServerPrograms {
    static let nginx = path(of: "nginx")
    static let openssl = path(of: "openssl")

    /// Whether those tests can run here; `Scripts/prepare-servers` installs what is missing.
    static let areThere = nginx != nil && openssl != nil

    private static func path(of name: String) -> String? {
        let known = ProcessInfo.processInfo.environment["PATH"] ?? ""
        // nginx lies where the path of a plain user does not lead.
        let folders = known.split(separator: ":").map(String.init) + ["/usr/local/sbin", "/usr/sbin"]
        return folders.map { "\($0)/\(name)" }.first(where: FileManager.default.isExecutableFile)
    }
}
