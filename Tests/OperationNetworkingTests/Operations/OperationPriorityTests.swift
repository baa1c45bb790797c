// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite("Priority of network operations", .timeLimit(.minutes(3)))
    struct OperationPriorityTests {
        @Test func `if a host has one slot, operations with a higher priority are sent first`() async throws {
            let server = try LoopbackServer()
            let gate = Gate()
            server.route("/*") { .text($0.path) }
            server.route("/first") { _ in LoopbackAnswer.text("first").after(gate) }
            let session = CurlSession.direct { $0.maximumConnectionsPerHost = 1 }
            defer { session.close() }
            func operation(_ target: String, _ priority: TransferPriority) -> NetworkDataOperation<Int> {
                let operation = NetworkDataOperation(url: server.url(target), urlSession: session) { data, _ in
                    data.count
                }
                operation.transferOptions.priority = priority
                return operation
            }
            let first = operation("/first", .low)
            first.start()
            _ = await server.heads(atLeast: 1)
            let rest = [
                operation("/low", .low), operation("/normal", .normal), operation("/high", .high),
                operation("/high-2", .high),
            ]
            for operation in rest { operation.start() }
            // The session accepts tasks in order. When this request has finished, all earlier tasks are waiting.
            let other = try LoopbackServer()
            other.route("/") { _ in .text("other") }
            _ = try await NetworkDataOperation(url: other.url(), urlSession: session) { data, _ in data.count }.run()
            #expect(server.requests.map(\.path) == ["/first"])
            gate.open()
            for operation in rest { _ = try await operation.value }
            #expect(server.requests.map(\.path) == ["/first", "/high", "/high-2", "/normal", "/low"])
        }

        @Test(.enabled(if: ServerPrograms.areThere))
        func `over HTTP/2, requests of all priorities succeed`() async throws {
            let bench = RealBench(try await NginxServer.shared.value, .curl, .http2)
            defer { bench.closeSession() }
            for priority in [TransferPriority.normal, .high, .low, .normal] {
                let request = try bench.request("GET", "/small") { $0.priority = priority }
                let record = await bench.run(request)
                #expect(record.isSuccess && record.bodyCount == 100, "\(priority)")
            }
        }
    }
#endif
