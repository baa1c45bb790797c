// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import BenchmarkSupport

/// Many operations in a queue: made, added, run and freed, ours against those that one would use instead.
///
/// Columns: nanoseconds an item unless another unit is given; where a target says "≥", the ratio is the peer's time ÷ ours.
@main
enum SchedulingBenchmark {
    static func main() {
        BenchmarkCommand("scheduling", workload: measure).main()
    }

    // Priorities come last: once a process has had an operation of low priority, each link costs a little more.
    private static func measure(_ scale: Scale) -> [Figure] {
        independentFigures(scale) + closureFigures(scale) + chainFigures(scale) + graphFigures(scale)
            + completionFigures(scale) + cancellationFigures(scale) + spawningFigures(scale) + memoryFigures(scale)
            + growthFigures(scale) + priorityFigures(scale)
    }
}
