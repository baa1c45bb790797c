// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport

/// A benchmark of the resilience features, with retry and offline policies that have no effect, operations that wait
/// for the network, and a large number of timers.
@main
enum ResilienceBenchmark {
    static func main() {
        BenchmarkCommand(
            "resilience",
            parts: [.init("idle", idlePolicies), .init("waiting", waitingOperations), .init("storm", timerStorm)]
        ).main()
    }
}
