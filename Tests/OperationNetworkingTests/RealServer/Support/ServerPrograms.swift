// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The programs that the real-server tests start.
enum ServerPrograms {
    static let nginx = path(of: "nginx")
    static let openssl = path(of: "openssl")

    /// A Boolean value that indicates whether the real-server tests can run here.
    ///
    /// `Scripts/prepare-servers` installs missing programs.
    static let areThere = nginx != nil && openssl != nil

    private static func path(of name: String) -> String? {
        let known = ProcessInfo.processInfo.environment["PATH"] ?? ""
        // nginx is in a folder that is not in the path of a regular user.
        let folders = known.split(separator: ":").map(String.init) + ["/usr/local/sbin", "/usr/sbin"]
        return folders.map { "\($0)/\(name)" }.first(where: FileManager.default.isExecutableFile)
    }
}
