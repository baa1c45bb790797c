// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

// Tests for steps of data, for files, and for actions of others.
extension OperationCancellationTests {
    @Test func `canceled at the headers, in the body or during decoding, an operation ends as canceled`() async throws {
        for step in Taker.Step.allCases {
            let bench = try OperationBench { _ in .json("[" + String(repeating: "1,", count: 100_000) + "1]") }
            let log = HandlerLog()
            do {
                let operation = Taker(bench) { if $0 == step, !$1.isCancelled { $1.cancel() } }
                log.watch(operation)
                await operation.startAndEnd()
                #expect(operation.outcome?.cancellationCause == .requested)
                #expect(operation.taskResult == nil || step == .decode)
            }
            try await check(bench, log, requests: 1...1, "\(step)")
        }
    }

    @Test func `canceled just after its file was moved, an operation leaves a complete file or none`() async throws {
        for step in [Stepper.Step.head, .evaluate] {
            let bench = try OperationBench { _ in .repeating([1, 2, 3], count: 300_000) }
            let log = HandlerLog()
            let folder = try TemporaryFolder()
            do {
                let operation = Stepper(bench, in: folder.url) { if $0 == step { $1.cancel() } }
                operation.destination = .file(folder.url.appendingPathComponent("file"))
                log.watch(operation)
                await operation.startAndEnd()
                #expect(operation.outcome?.cancellationCause == .requested)
            }
            try await check(bench, log, requests: 1...1, "\(step)")
            // The evaluation of `Stepper` moves and removes the file once it has begun.
            if step == .head {
                #expect(folder.content == ["file"])
                #expect(try Data(contentsOf: folder.url.appendingPathComponent("file")).count == 300_000)
            } else {
                #expect(try await folder.contentAtRest() == [])
            }
        }
    }

    @Test func `closing the session or canceling the task ends downloads and uploads`() async throws {
        for closes in [true, false] {
            let bench = try OperationBench()
            bench.server.route("GET", "/") { _ in .stalling(after: "some", of: 300000) }
            bench.server.routeEarly("POST", "/") { _ in LoopbackAnswer(.awaitBody(atLeast: 1), .stallForever) }
            let folder = try TemporaryFolder()
            let download = DownloadTo(folder.url, bench, "/") { _, _ in 0 }
            let upload = bench.upload(body: .stream(canBeSentAgain: false) { Endless() })
            download.start()
            upload.start()
            _ = await bench.server.heads(atLeast: 2)
            if closes {
                bench.closeSession()
                #expect(await download.finalOutcome.error?.code == .sessionClosed)
                #expect(await upload.finalOutcome.error?.code == .sessionClosed)
            } else {
                download.networkTask?.cancel()
                upload.networkTask?.cancel()
                #expect(await download.finalOutcome.cancellationCause?.code == .networkTaskCancelled)
                #expect(await upload.finalOutcome.cancellationCause?.code == .networkTaskCancelled)
            }
            await bench.server.counts { $0.openConnections == 0 }
            #expect(try await folder.contentAtRest() == [])
        }
    }

    @Test func `an operation whose session was closed before its start fails without a connection`() async throws {
        let bench = try OperationBench()
        bench.closeSession()
        let folder = try TemporaryFolder()
        #expect(await failure(of: bench.text())?.code == .sessionClosed)
        #expect(await failure(of: DownloadTo(folder.url, bench, "/") { _, _ in 0 })?.code == .sessionClosed)
        #expect(bench.server.counts.heads == 0)
        #expect(try await folder.contentAtRest() == [])
    }
}
