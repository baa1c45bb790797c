// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import BenchmarkSupport

/// What it costs that requests get through: retry and offline policies that have nothing to do, operations that wait
/// for the network, and a storm of timers.
@main
enum ResilienceBenchmark {
    static func main() {
        BenchmarkCommand(
            "resilience",
            parts: [.init("idle", idlePolicies), .init("waiting", waitingOperations), .init("storm", timerStorm)]
        ).main()
    }
}
