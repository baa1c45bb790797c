// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation

/// The preparation that a benchmark needs before it can measure.
package enum Preparation {
    /// The root folder of the package.
    package static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// The C program that uses libcurl directly.
    package static let peer = root.appendingPathComponent("Benchmarks/.build/transport-peer").path

    /// Installs and builds missing programs, and returns false if this is not possible.
    ///
    /// - Parameter script: The path of the script in the package that installs and builds the programs.
    package static func run(_ script: String = "Scripts/prepare-transport-benchmark") -> Bool {
        let process = Process()
        process.executableURL = root.appendingPathComponent(script)
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}
