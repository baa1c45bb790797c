// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport

/// A benchmark that measures the cost of groups, compared with their children alone and with Swift's task groups.
///
/// The columns contain nanoseconds per child or per leaf of the tree. The children do very little work, so that the
/// result shows the cost of the group.
@main
enum GroupsBenchmark {
    static func main() {
        BenchmarkCommand(
            "groups",
            parts: [
                .init("flat", flatFigures), .init("skynet", skynetFigures),
                .init("cancellation", cancellationFigures), .init("unlimited", unlimitedFigures),
            ]
        ).main()
    }
}
