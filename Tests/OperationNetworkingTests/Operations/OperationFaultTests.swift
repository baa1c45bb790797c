// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite("Fault catalogue, through operations", .timeLimit(.minutes(2)))
struct OperationFaultTests {
    private func request(
        _ fault: OperationFault, _ bench: OperationBench, _ method: String = "GET", body: RequestBody = .none
    ) throws -> NetworkRequest {
        bench.server.route("/", fault.answer)
        return try NetworkRequest(
            method, url: bench.server.url("/"), headers: ["Accept": "application/pdf, text/plain"], body: body,
            options: fault.options)
    }

    private func check<Result>(
        _ operation: NetworkOperation<Result, String>, _ fault: OperationFault, _ bench: OperationBench
    ) async throws {
        operation.callbackQueue = bench.callbacks
        do {
            let value = try await operation.run()
            guard case .body(let body) = fault.end else { return unmet("a success: \(value.prefix(100))") }
            #expect(value == body)
        } catch {
            guard case .failure(let codes) = fault.end, case .failed(let failure) = error
            else { return unmet("\(error)") }
            #expect(codes.contains(failure.code), "\(failure)")
            #expect(failure.request != nil)
        }
        await bench.server.counts { $0.openConnections == $0.idleConnections }
    }

    @Test(arguments: OperationFault.all)
    func `a data operation ends as the fault catalogue says`(_ fault: OperationFault) async throws {
        let bench = try OperationBench()
        let operation = NetworkDataOperation<String>(request: try request(fault, bench), urlSession: bench.session)
        try await check(operation, fault, bench)
    }

    @Test(arguments: OperationFault.all)
    func `an upload of a file ends as the fault catalogue says`(_ fault: OperationFault) async throws {
        let bench = try OperationBench()
        let file = try TemporaryFile(Data(TestPattern.bytes(count: 100_000)))
        let request = try request(fault, bench, "POST", body: .file(try FileRegion(file.url)))
        let operation = NetworkOperation<Data, String>(request: request, urlSession: bench.session) { data, _ in
            String(decoding: data, as: UTF8.self)
        }
        try await check(operation, fault, bench)
        // A request that may have been processed is not sent again. The server may read it after the client has ended.
        _ = await bench.server.heads(atLeast: 1)
        #expect(bench.server.counts.heads == 1)
    }

    @Test(arguments: OperationFault.all.filter(\.isOfFiles))
    func `a temporary download leaves no file after any fault`(_ fault: OperationFault) async throws {
        final class Temporary: NetworkDownloadOperation<String>, @unchecked Sendable {
            let folder: URL
            init(_ request: NetworkRequest, _ session: ExchangeSession, _ folder: URL) {
                self.folder = folder
                super.init(request: request, urlSession: session) { file, _ in
                    try String(contentsOf: file, encoding: .utf8)
                }
            }
            override var temporaryFolder: URL { folder }
        }
        let bench = try OperationBench()
        let folder = try TemporaryFolder()
        let operation = Temporary(try request(fault, bench), bench.session, folder.url)
        try await check(operation, fault, bench)
        #expect(try await folder.contentAtRest() == [])
    }

    @Test(arguments: OperationFault.all.filter(\.isOfFiles))
    func `a download saves a whole file or none after each fault`(_ fault: OperationFault) async throws {
        let bench = try OperationBench()
        let folder = try TemporaryFolder()
        let place = folder.url.appendingPathComponent("file")
        let operation = NetworkDownloadOperation<String>(
            request: try request(fault, bench), urlSession: bench.session
        ) { file, _ in try String(contentsOf: file, encoding: .utf8) }
        operation.destination = .file(place)
        try await check(operation, fault, bench)
        if case .body = fault.end {
            #expect(folder.content == ["file"])
        } else if fault.leavesPart {
            #expect(folder.content.count == 2 && folder.content.allSatisfy { $0.hasPrefix(".operationkit-") })
            // The next download resumes from the partial file.
            let whole = LoopbackResource(.pattern(count: 300_000), etag: "\"one\"")
            bench.server.route("/") { whole.answer(to: $0) }
            let next = NetworkDownloadOperation<Int>(url: bench.server.url("/"), urlSession: bench.session) { file, _ in
                let data = try Data(contentsOf: file)
                return data.withUnsafeBytes { TestPattern.matches($0, from: 0) } ? data.count : -1
            }
            next.destination = .file(place)
            #expect(try await next.run() == 300_000)
            #expect((next.downloadedFile?.resumedBytes ?? 0) > 0)
            #expect(folder.content == ["file"])
        } else {
            #expect(folder.content == [])
        }
    }
}

extension OperationFault {
    /// Downloads request files without compression, so an archive bomb is not expanded.
    fileprivate var isOfFiles: Bool { !name.hasPrefix("92:") }
}
