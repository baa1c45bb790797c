// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationTestKit

/// The resource use of this process, which must not grow over time.
struct ProcessShape: Sendable, CustomStringConvertible {
    let memory: Int
    /// The target of each open descriptor.
    let descriptors: [Int32: String]
    let threads: Int

    /// Measures the current resource use.
    init() {
        memory = ProcessFigures.residentBytes
        descriptors = ProcessFigures.openDescriptors
        threads = ProcessFigures.threads
    }

    var description: String { "\(memory >> 20) MiB, \(descriptors.count) descriptors, \(threads) threads" }

    /// The descriptors that were opened since an earlier moment, if there are more than allowed, each with its target.
    ///
    /// - Parameter connections: The number of allowed new connections. Both ends of each are in this process.
    func newDescriptors(since earlier: ProcessShape, connections: Int = 0) -> [String] {
        let before = Dictionary(grouping: earlier.descriptors.values, by: Self.kind).mapValues(\.count)
        let after = Dictionary(grouping: descriptors, by: { Self.kind($0.value) })
        return after.flatMap { kind, open in
            let allowed = before[kind, default: 0] + (kind == "socket" ? 2 * connections : 0)
            guard open.count > allowed else { return [String]() }
            return open.filter { earlier.descriptors[$0.key] != $0.value }.map { "\($0.key) \($0.value)" }
        }.sorted()
    }

    /// The targets of sockets and pipes contain unique numbers.
    ///
    /// All other targets are names.
    private static func kind(_ target: String) -> String {
        ["socket", "pipe"].first { target.hasPrefix("\($0):") } ?? target
    }

    /// The resources that have grown since an earlier moment, except for a few idle threads of the system.
    func growth(since earlier: ProcessShape, connections: Int = 0) -> [String] {
        var growth = newDescriptors(since: earlier, connections: connections)
        #if !TSAN && !ASAN
            // A sanitizer needs additional memory for each byte.
            if memory - earlier.memory >= 24 << 20 { growth.append("memory") }
        #endif
        if threads > earlier.threads + 4 { growth.append("threads") }
        return growth
    }

    /// Measures until the process has shrunk to its earlier shape, or for some seconds.
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
