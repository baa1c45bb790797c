// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Dispatch
import Foundation
import NetworkBenchmarkSupport

/// A benchmark that compares network operations with tasks of their session, against a local nginx.
///
/// The benchmark calls `Scripts/prepare-transport-benchmark`, which installs the required programs.
@main
enum NetworkOperationsBenchmark {
    static func main() {
        var arguments = Array(CommandLine.arguments.dropFirst())
        ProcessLimits.raiseFileLimit()
        guard let role = arguments.first.flatMap(Role.init) else {
            BenchmarkCommand(
                "network-operations",
                parts: [
                    .init("paths", userPaths), .init("http2", http2Requests), .init("small", smallOperations),
                    .init("large", largeOperations), .init("held", operationsInFlight),
                ]
            ).main()
        }
        arguments.removeFirst()
        switch role {
        case .client: SmallClient(arguments)?.run()
        case .path: run { [arguments] in await UserPathClient(arguments)?.run() }
        case .http2: run { [arguments] in await HTTP2Client(arguments)?.run() }
        case .download: LargeOperation(arguments)?.download()
        case .upload: LargeOperation(arguments)?.upload()
        case .hold: HoldingClient(arguments)?.run()
        }
    }

    private static func run(_ client: @escaping @Sendable () async -> Void) {
        let isOver = DispatchSemaphore(value: 0)
        Task {
            await client()
            isOver.signal()
        }
        isOver.wait()
    }

    /// The role of a child process, which runs separately so that its time and memory can be measured.
    enum Role: String {
        case client = "--client"
        case path = "--path"
        case http2 = "--http2"
        case download = "--download"
        case upload = "--upload"
        case hold = "--hold"
    }
}
