// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import NetworkBenchmarkSupport

/// Network operations, beside the tasks of the session beneath them, with an nginx on this machine.
///
/// What it needs is installed by `Scripts/prepare-transport-benchmark`, which it calls itself.
@main
enum NetworkOperationsBenchmark {
    static func main() {
        var arguments = Array(CommandLine.arguments.dropFirst())
        ProcessLimits.raiseFileLimit()
        guard let role = arguments.first.flatMap(Role.init) else {
            BenchmarkCommand(
                "network-operations",
                parts: [
                    .init("small", smallOperations), .init("large", largeOperations),
                    .init("held", operationsInFlight),
                ]
            ).main()
        }
        arguments.removeFirst()
        switch role {
        case .client: SmallClient(arguments)?.run()
        case .download: LargeOperation(arguments)?.download()
        case .upload: LargeOperation(arguments)?.upload()
        case .hold: HoldingClient(arguments)?.run()
        }
    }

    /// What a process is that the benchmark starts, so that time and memory are its alone.
    enum Role: String {
        case client = "--client"
        case download = "--download"
        case upload = "--upload"
        case hold = "--hold"
    }
}
