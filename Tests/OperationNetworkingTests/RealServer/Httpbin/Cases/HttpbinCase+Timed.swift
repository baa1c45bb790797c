// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    extension HttpbinCase {
        static var timed: [HttpbinCase] {
            [
                HttpbinCase("a delayed response is received") { bench async throws in
                    #expect(try await bench.get("delay/0.1").url.hasSuffix("/delay/0.1"))
                },
                HttpbinCase("a response that exceeds the firstByte limit fails with timedOut") { bench async throws in
                    let operation = bench.base.get("delay/1", as: Data.self)
                    let base = with(bench.base) { $0.options.timeouts.firstByte = .milliseconds(50) }
                    #expect(operation.attemptCount == 0)
                    let error = await failure(of: base.get("delay/1", as: Data.self))
                    #expect(error?.code == .timedOut && error?.phase == .awaitingResponse)
                },
                HttpbinCase("an operation that exceeds its timeout is canceled") { bench async throws in
                    let operation = bench.base.get("delay/1", as: Data.self)
                    operation.timeout = .milliseconds(50)
                    operation.start()
                    #expect(await operation.finalOutcome.cancellationCause?.code == .timedOut)
                },
                HttpbinCase("a slow body arrives completely") { bench async throws in
                    let operation = bench.base.operation(
                        for: Endpoint<Data>.get("drip", ["duration": 0.1, "numbytes": 20]).header("Accept", "*/*"))
                    #expect(try await operation.run() == Data(repeating: UInt8(ascii: "*"), count: 20))
                    #expect(operation.downloadProgress == TransferProgress(completedBytes: 20, totalBytes: 20))
                },
                HttpbinCase("a slow body that exceeds the total limit fails with timedOut") { bench async throws in
                    var base = bench.base
                    base.headers["Accept"] = "*/*"
                    base.options.timeouts.total = .milliseconds(100)
                    let error = await failure(of: base.get("drip", ["duration": 2, "numbytes": 10], as: Data.self))
                    #expect(error?.code == .timedOut)
                },
                HttpbinCase("a failure with a slow body reports its status and body") { bench async throws in
                    let operation = bench.base.get("drip", ["duration": 0, "numbytes": 5, "code": 503], as: Data.self)
                    let error = await failure(of: operation)
                    #expect(error?.status == 503 && error?.bodyPrefix == Data("*****".utf8))
                },
                HttpbinCase("canceling an operation during a slow response ends it") { bench async throws in
                    let operation = bench.base.operation(
                        for: Endpoint<Data>.get("drip", ["duration": 5, "numbytes": 50]).header("Accept", "*/*"))
                    let begun = Gate()
                    operation.downloadProgressHandler = { if $0.completedBytes > 0 { begun.open() } }
                    operation.progressPacing = ProgressPacing(smallestStep: 1)
                    operation.start()
                    await begun.passage()
                    operation.cancel()
                    #expect(await operation.finalOutcome.cancellationCause == .requested)
                },
            ]
        }
    }
#endif
