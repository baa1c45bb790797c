// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit

/// How large this process is: what must stay as it is however long something goes on.
struct ProcessShape: Sendable, CustomStringConvertible {
    let memory: Int
    /// What each open descriptor leads to.
    let descriptors: [Int32: String]
    let threads: Int

    /// Measures now.
    init() {
        memory = ProcessFigures.residentBytes
        descriptors = ProcessFigures.openDescriptors
        threads = ProcessFigures.threads
    }

    var description: String { "\(memory >> 20) MiB, \(descriptors.count) descriptors, \(threads) threads" }

    /// The descriptors that are open now and were not then, if they are more than they should be; each with its target.
    ///
    /// - Parameter connections: How many may be open now that were not then, both ends of each in this process.
    func newDescriptors(since earlier: ProcessShape, connections: Int = 0) -> [String] {
        let before = Dictionary(grouping: earlier.descriptors.values, by: Self.kind).mapValues(\.count)
        let after = Dictionary(grouping: descriptors, by: { Self.kind($0.value) })
        return after.flatMap { kind, open in
            let allowed = before[kind, default: 0] + (kind == "socket" ? 2 * connections : 0)
            guard open.count > allowed else { return [String]() }
            return open.filter { earlier.descriptors[$0.key] != $0.value }.map { "\($0.key) \($0.value)" }
        }.sorted()
    }

    /// Sockets and pipes have numbers of their own; everything else has a name.
    private static func kind(_ target: String) -> String {
        ["socket", "pipe"].first { target.hasPrefix("\($0):") } ?? target
    }

    /// What has grown since an earlier moment: nothing, but for what a few idle threads of the system account for.
    func growth(since earlier: ProcessShape, connections: Int = 0) -> [String] {
        var growth = newDescriptors(since: earlier, connections: connections)
        #if !TSAN && !ASAN
            // A sanitizer keeps books of its own on each byte.
            if memory - earlier.memory >= 24 << 20 { growth.append("memory") }
        #endif
        if threads > earlier.threads + 4 { growth.append("threads") }
        return growth
    }

    /// Measures until it is as small as it was, or for some seconds: what has ended may take a moment to go.
    static func settled(since earlier: ProcessShape, connections: Int = 0) async throws -> ProcessShape {
        try await TestThread.run {
            let start = ContinuousClock.now
            var shape = ProcessShape()
            while !shape.growth(since: earlier, connections: connections).isEmpty,
                start.duration(to: .now) < .seconds(10)
            {
                usleep(10_000)
                shape = ProcessShape()
            }
            return shape
        }
    }
}
