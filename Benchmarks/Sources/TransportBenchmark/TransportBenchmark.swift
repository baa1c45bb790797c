// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import NetworkBenchmarkSupport

/// A benchmark of requests to a local nginx with `CurlSession`, `URLSession`, a C program on libcurl, and the curl
/// command.
///
/// The benchmark calls `Scripts/prepare-transport-benchmark`, which installs and builds the required programs.
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

    /// The role of a child process, which runs separately so that its time and memory can be measured.
    enum Role: String {
        case client = "--client"
        case download = "--download"
        case upload = "--upload"
        case hold = "--hold"
    }
}
