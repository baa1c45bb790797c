// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import NetworkBenchmarkSupport

/// Requests to an nginx on this machine, by `CurlSession`, by `URLSession`, by a bare C program on libcurl, and by the
/// curl command.
///
/// What it needs is installed and built by `Scripts/prepare-transport-benchmark`, which it calls itself.
@main
enum TransportBenchmark {
    static func main() {
        var arguments = Array(CommandLine.arguments.dropFirst())
        guard let role = arguments.first.flatMap(Role.init) else {
            BenchmarkCommand("transport", workload: transportWorkload).main()
        }
        arguments.removeFirst()
        ProcessLimits.raiseFileLimit()
        switch role {
        case .client: TransportClient(Array(arguments.dropFirst()))?.run(arguments[0])
        case .download: LargeTransfer(arguments)?.download()
        case .upload: LargeTransfer(arguments)?.upload()
        case .hold: HeldRequests(arguments)?.run()
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
