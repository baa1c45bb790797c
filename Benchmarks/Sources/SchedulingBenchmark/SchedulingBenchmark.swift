// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import BenchmarkSupport

/// Many operations in a queue: made, added, run and freed, ours against those that one would use instead.
///
/// Columns: nanoseconds an item unless another unit is given; where a target says "≥", the ratio is the peer's time ÷ ours.
@main
enum SchedulingBenchmark {
    static func main() {
        BenchmarkCommand("scheduling", parts: parts).main()
    }

    // Priorities come last: once a process has had an operation of low priority, each link costs a little more.
    private static var parts: [BenchmarkCommand.Part] {
        [
            .init("independent", independentFigures), .init("closures", closureFigures),
            .init("chains", chainFigures), .init("graphs", graphFigures), .init("completion", completionFigures),
            .init("cancellation", cancellationFigures), .init("spawning", spawningFigures),
            .init("memory", memoryFigures), .init("edges", edgesFigures), .init("members", memberFigures),
            .init("growth", growthFigures), .init("priorities", priorityFigures),
        ]
    }
}
