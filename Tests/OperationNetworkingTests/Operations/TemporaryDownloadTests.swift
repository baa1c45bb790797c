// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Downloads to temporary files", .timeLimit(.minutes(3)))
struct TemporaryDownloadTests {
    private static let size = 900_000
    private let bench: OperationBench
    private let folder: TemporaryFolder
    private let resource = LoopbackResource(.pattern(count: size), etag: "\"one\"")

    init() throws {
        bench = try OperationBench()
        folder = try TemporaryFolder()
    }

    private func operation(_ target: String = "/file") -> DownloadTo<Bool> {
        DownloadTo(folder.url, bench, target) { file, _ in
            let bytes = try Data(contentsOf: file)
            return bytes.count == Self.size && bytes.withUnsafeBytes { TestPattern.matches($0, from: 0) }
        }
    }

    @Test func `an attempt after an interrupted one resumes from its bytes, and no file is left`() async throws {
        let resource = resource
        let count = Locked(0)
        bench.server.route("GET", "/file") { request in
            let number = count.next()
            let answer = resource.answer(to: request)
            return number == 1 ? answer.cut(at: 400_000) : number == 2 ? answer.cut(at: 200_000) : answer
        }
        let operation = operation()
        operation.networkAttempts.changePolicies { $0[.manual] = Again(most: 5) }
        let counts = EventRecorder<Int64>()
        operation.downloadProgressHandler = { counts.record($0.completedBytes) }
        #expect(try await operation.run())
        #expect(operation.attemptCount == 3)
        #expect((operation.downloadedFile?.resumedBytes ?? 0) > 500_000)
        let ranges = bench.server.requests.map { $0["Range"] }
        #expect(ranges[0] == nil && ranges[1] != nil && ranges[2] != nil)
        #expect(bench.server.requests[1]["If-Range"] == "\"one\"")
        await bench.settled()
        #expect(counts.events == counts.events.sorted())
        #expect(counts.events.last == Int64(Self.size))
        #expect(folder.content == [])
    }

    @Test func `a file that changes between two attempts is not mixed from both versions`() async throws {
        let first = LoopbackResource(.bytes(Array(repeating: 1, count: Self.size)), etag: "\"zero\"")
        let second = resource
        let isChanged = Locked(false)
        bench.server.route("GET", "/file") { request in
            isChanged.withLock { exchange(&$0, with: true) }
                ? second.answer(to: request) : first.answer(to: request).cut(at: 400_000)
        }
        let operation = operation()
        operation.networkAttempts.changePolicies { $0[.manual] = Again(most: 2) }
        #expect(try await operation.run())
        #expect(operation.downloadedFile?.resumedBytes == 0)
    }

    @Test func `a download that finally failed leaves no file, even while the operation exists`() async throws {
        let resource = resource
        bench.server.route("GET", "/file") { resource.answer(to: $0).cut(at: 400_000) }
        let operation = operation()
        let (folder, found) = (folder, EventRecorder<[String]>())
        operation.failureHandler = { _ in found.record(folder.content) }
        #expect(await failure(of: operation)?.code == .truncatedBody)
        // The file is gone even before the failure is reported.
        #expect(folder.content == [])
        await bench.settled()
        #expect(found.events == [[]])
        withExtendedLifetime(operation) {}
    }

    @Test func `lengths and checksums are verified, and a file that does not match is removed`() async throws {
        let resource = resource
        bench.server.route("GET", "/file") { resource.answer(to: $0) }
        let wrong = operation()
        wrong.downloadOptions.checksum = FileChecksum(algorithm: .crc32, hexadecimal: "00000000")
        #expect(await failure(of: wrong)?.code == .checksumMismatch)
        let longer = operation()
        longer.downloadOptions.expectedLength = 900_001
        #expect(await failure(of: longer)?.code == .unexpectedLength)
        let limited = operation()
        limited.downloadOptions.maximumLength = 899_999
        #expect(await failure(of: limited)?.code == .bodyTooLarge)
        let right = operation()
        right.downloadOptions.expectedLength = 900_000
        #expect(try await right.run())
        #expect(try await folder.contentAtRest() == [])
    }

    @Test func `a response without a body is an empty file, and any accepted response is a file`() async throws {
        bench.server.route("/nothing") { _ in .status(204) }
        bench.server.route("/gone") { _ in .text("gone", status: 410) }
        let nothing = DownloadTo(folder.url, bench, "/nothing") { file, _ in try Data(contentsOf: file).count }
        #expect(try await nothing.run() == 0)
        let head = try NetworkRequest("HEAD", url: bench.server.url("/gone"))
        let headed = NetworkDownloadOperation(request: head, urlSession: bench.session) { file, response in
            (try Data(contentsOf: file).count, response.statusCode)
        }
        headed.responseRules.statuses = .any
        #expect(try await headed.run() == (0, 410))
        let gone = DownloadTo(folder.url, bench, "/gone") { file, _ in try String(contentsOf: file, encoding: .utf8) }
        gone.responseRules.statuses = .success(or: 410)
        #expect(try await gone.run() == "gone")
        #expect(try await folder.contentAtRest() == [])
    }

    @Test func `an accepted response with another status replaces the partial file`() async throws {
        let resource = resource
        bench.server.route("GET", "/file") { request in
            request.number == 0 ? resource.answer(to: request).cut(at: 400_000) : .text("gone", status: 404)
        }
        let operation = DownloadTo(folder.url, bench, "/file") { file, response in
            "\(response.statusCode) \(try String(contentsOf: file, encoding: .utf8))"
        }
        operation.responseRules.statuses = .success(or: 404)
        operation.networkAttempts.changePolicies { $0[.manual] = Again(most: 2) }
        #expect(try await operation.run() == "404 gone")
        #expect(bench.server.requests.last?["Range"] != nil)
        #expect(operation.downloadedFile?.resumedBytes == 0)
    }

    @Test(arguments: [true, false])
    func `the error for a rejected content type contains the start of the body`(isTemporary: Bool) async throws {
        bench.server.route("GET", "/file") { _ in .bytes(Array("<html>".utf8)).with("Content-Type", "text/html") }
        let operation = operation()
        operation.responseRules.contentTypes = .json
        if !isTemporary { operation.destination = .file(folder.url.appendingPathComponent("file")) }
        let error = await failure(of: operation)
        #expect(error?.code == .unacceptableContentType)
        #expect(error?.bodyPrefix == Data("<html>".utf8))
        #expect(try await folder.contentAtRest() == [])
    }

    @Test("The body of a rejected response is kept up to the configured number of bytes", arguments: [true, false])
    func largeRefusal(isTemporary: Bool) async throws {
        bench.server.route("GET", "/file") { _ in .text(String(repeating: "x", count: 300_000), status: 400) }
        let decoded = EventRecorder<Int>()
        let operation = operation()
        operation.responseRules.errorBodyBytes = 100_000
        operation.responseRules.decodeError = { data, _ in
            decoded.record(data.count)
            return nil
        }
        if !isTemporary { operation.destination = .file(folder.url.appendingPathComponent("file")) }
        #expect(await failure(of: operation)?.bodyPrefix?.count == 100_000)
        #expect(decoded.events == [300_000])
    }

    @Test func `the final response is that of the complete file, even if the partial response was read`() async throws {
        let resource = resource
        let (bytes, gate) = (TestPattern.bytes(count: Self.size), Gate())
        bench.server.route("GET", "/file") { request in
            guard request.number > 0, let range = request["Range"], let start = Int(range.dropFirst(6).dropLast())
            else {
                return resource.answer(to: request).cut(at: 400_000)
            }
            return LoopbackAnswer(
                .head(
                    206,
                    [
                        "Content-Length": "\(bytes.count - start)", "ETag": "\"one\"",
                        "Content-Range": "bytes \(start)-\(bytes.count - 1)/\(bytes.count)",
                    ]), .send(Array(bytes[start..<start + 200_000])), .stall(until: gate),
                .send(Array(bytes[(start + 200_000)...])))
        }
        let operation = DownloadTo(folder.url, bench, "/file") { _, response in response.expectedContentLength }
        operation.networkAttempts.changePolicies { $0[.manual] = Again(most: 2) }
        operation.downloadProgressHandler = { [weak operation] _ in
            if let operation, operation.attemptCount == 2, operation.response != nil { gate.open() }
        }
        #expect(try await operation.run() == Int64(Self.size))
        #expect(operation.response?.expectedContentLength == Int64(Self.size))
    }

    @Test func `the response is readable while the file arrives`() async throws {
        let resource = resource
        let gate = Gate()
        bench.server.route("GET", "/file") { resource.answer(to: $0).with("X-Answer", "42") }
        let operation = operation()
        let seen = EventRecorder<String>()
        operation.downloadProgressHandler = { [weak operation] _ in
            seen.record(operation?.responseHead?.headers["X-Answer"] ?? "none")
            seen.record("\(operation?.response?.statusCode ?? 0)")
            gate.open()
        }
        #expect(try await operation.run())
        await gate.passage()
        #expect(Set(seen.events) == ["42", "200"])
    }

    @Test(arguments: [true, false])
    func `the body of a rejected response is read up to its limit, and then cut off`(isTemporary: Bool) async throws {
        bench.server.route("GET", "/file") { _ in
            LoopbackAnswer(.head(500), .send("sorry"), .send(repeating: Array("!".utf8), count: nil))
        }
        let operation = operation()
        if !isTemporary { operation.destination = .file(folder.url.appendingPathComponent("file")) }
        let error = await failure(of: operation)
        #expect(error?.status == 500)
        #expect(error?.bodyPrefix?.starts(with: Data("sorry!!!".utf8)) == true)
        #expect(error?.bodyPrefix?.count == 16 << 10)
        await bench.server.counts { $0.openConnections == 0 }
        #expect(try await folder.contentAtRest() == [])
    }

    @Test func `a subclass with a custom collector fails with a message that names the alternative`() async throws {
        final class Own: ResponseCollector<URL>, @unchecked Sendable {
            override func finish() -> URL { URL(fileURLWithPath: "/") }
        }
        final class Collecting: NetworkDownloadOperation<Int>, @unchecked Sendable {
            override func makeCollector(for head: ResponseHead) -> ResponseCollector<URL> { Own() }
        }
        bench.server.route("GET", "/file") { _ in .text("Hello") }
        let operation = Collecting(url: bench.server.url("/file"), urlSession: bench.session) { _, _ in 0 }
        let error = await failure(of: operation)
        #expect(error?.code == .evaluationFailed && error?.message.contains("super.makeCollector") == true)
    }
}
