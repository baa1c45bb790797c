// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What must be there before anything can be measured.
package enum Preparation {
    /// The folder of the package.
    package static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// The bare C program.
    package static let peer = root.appendingPathComponent("Benchmarks/.build/transport-peer").path

    /// Installs and builds what is missing; false if that is impossible here.
    package static func run() -> Bool {
        let process = Process()
        process.executableURL = root.appendingPathComponent("Scripts/prepare-transport-benchmark")
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}
