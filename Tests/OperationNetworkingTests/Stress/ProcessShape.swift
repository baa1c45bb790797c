// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit

/// How large this process is: what must stay as it is however long something goes on.
struct ProcessShape: Sendable, CustomStringConvertible {
    let memory: Int
    let descriptors: Int
    let threads: Int

    /// Measures now.
    init() {
        memory = ProcessFigures.residentBytes
        descriptors = ProcessFigures.descriptors
        threads = ProcessFigures.threads
    }

    var description: String { "\(memory >> 20) MiB, \(descriptors) descriptors, \(threads) threads" }

    /// Whether it has grown since an earlier moment by more than what a few idle threads of the system account for.
    ///
    /// - Parameter connections: How many may be open now that were not then, both ends of each in this process.
    func isFlat(since earlier: ProcessShape, connections: Int) -> Bool {
        memory - earlier.memory < 24 << 20 && descriptors <= earlier.descriptors + 2 * connections + 4
            && threads <= earlier.threads + 4
    }

    /// Measures until it is as small as it was, or for some seconds: what has ended may take a moment to go.
    static func settled(since earlier: ProcessShape, connections: Int = 0) async throws -> ProcessShape {
        try await TestThread.run {
            let start = ContinuousClock.now
            var shape = ProcessShape()
            while shape.descriptors > earlier.descriptors + 2 * connections || shape.threads > earlier.threads + 4,
                start.duration(to: .now) < .seconds(5)
            {
                usleep(10_000)
                shape = ProcessShape()
            }
            return shape
        }
    }
}
