// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import BenchmarkSupport

/// Many operations as one: what a group costs beside its children, and beside the task groups of the language.
///
/// Columns: nanoseconds a child, or a leaf of the tree. The children do next to nothing, so that what is seen is the group.
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
