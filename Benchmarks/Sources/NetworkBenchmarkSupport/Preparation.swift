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
    ///
    /// - Parameter script: What does that, by its path in the package.
    package static func run(_ script: String = "Scripts/prepare-transport-benchmark") -> Bool {
        let process = Process()
        process.executableURL = root.appendingPathComponent(script)
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}
