// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import OperationCore

/// Returns the time per operation for a million operations, compared with the time for ten thousand operations.
///
/// If the ratio were more than 2, the growth would not be linear.
func growthFigures(_ scale: Scale) -> [Figure] {
    let scale = scale.sized(1_000_000, rounds: 3)
    return [
        figure(scale, "independent", runIndependent), figure(scale, "closures", runClosures),
        figure(scale, "chain", .chain), figure(scale, "binary tree", .tree), figure(scale, "wavefront", .wavefront),
        figure(scale, "graph traversal", .traversal), figure(scale, "fan-out, fan-in", .fan),
        figure(scale, "reverse completion", runReverseCompletion), figure(scale, "cancel storm", runCancelFirst),
        figure(scale, "spawn by adding in bodies", runSpawning), figure(scale, "mixed priorities", runMixed),
    ]
}

private func figure(_ scale: Scale, _ name: String, _ shape: Graph.Shape) -> Figure {
    let graphs = [few(scale), scale.count].map { (count: $0, graph: Graph(shape, $0)) }
    return figure(scale, name) { count in
        for (size, graph) in graphs where size == count { runGraph(graph, width: coreCount) }
    }
}

private func figure(_ scale: Scale, _ name: String, _ run: (Int) -> Void) -> Figure {
    let pair = growth(scale, few: few(scale), run)
    return .ratio(
        "growth, \(name): one of \(scale.count) ÷ one of \(few(scale))", unit: "ns", pair, target: .atMost(2))
}

private func few(_ scale: Scale) -> Int { max(scale.count / 100, 100) }
