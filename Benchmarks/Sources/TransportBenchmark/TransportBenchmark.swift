// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation

/// Small requests to an nginx on this machine, by `CurlSession`, by `URLSession`, and by a bare C program on libcurl.
///
/// `Scripts/prepare-transport-benchmark` installs nginx and libcurl's headers, and builds the C program.
@main
enum TransportBenchmark {
    static func main() {
        let arguments = CommandLine.arguments
        if arguments.count == 6, arguments[1] == "--client", let client = TransportClient(Array(arguments[3...])) {
            return client.run(arguments[2])
        }
        BenchmarkCommand("transport", workload: transportWorkload).main()
    }
}
