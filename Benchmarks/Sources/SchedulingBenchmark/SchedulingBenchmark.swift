// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport

/// A benchmark that creates, adds, runs and releases many operations in a queue, compared with alternatives.
///
/// The columns contain nanoseconds per item unless the line shows another unit. If a target contains "≥", the ratio is
/// the peer's time ÷ the time of OperationKit.
@main
enum SchedulingBenchmark {
    static func main() {
        BenchmarkCommand("scheduling", parts: parts).main()
    }

    // Priorities come last, because each dependency costs more after a process has run an operation of low priority.
    private static var parts: [BenchmarkCommand.Part] {
        [
            .init("independent", independentFigures), .init("floor", floorFigures),
            .init("closures", closureFigures), .init("chains", chainFigures), .init("graphs", graphFigures),
            .init("completion", completionFigures),
            .init("cancellation", cancellationFigures), .init("spawning", spawningFigures),
            .init("memory", memoryFigures), .init("edges", edgesFigures), .init("members", memberFigures),
            .init("growth", growthFigures), .init("priorities", priorityFigures),
        ]
    }
}
