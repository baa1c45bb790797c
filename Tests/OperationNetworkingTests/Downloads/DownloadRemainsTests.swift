// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// Tests the files that a download leaves beside its destination.
@Suite(.timeLimit(.minutes(3)))
struct DownloadRemainsTests {
    @Test func `two POST downloads of the same URL can save to one folder at the same time`() async throws {
        let bench = try DownloadBench()
        let gate = Gate()
        bench.server.route("POST", "/file") { request in
            LoopbackAnswer(
                .head(200, ["Content-Length": "6", "Content-Disposition": "attachment; filename=\"\(request.text)\""]),
                .send("abc"), .stall(until: gate), .send("def"))
        }
        let both = try ["one", "two"].map { name in
            let request = try NetworkRequest("POST", url: bench.server.url("/file"), body: .data(Data(name.utf8)))
            let running = RunningDownload(
                request, over: bench.bench.session, Download(to: .folder(bench.folder))
            ) { _ in }
            running.task.resume()
            return running
        }
        _ = await bench.server.heads(atLeast: 2)
        gate.open()
        for (running, name) in zip(both, ["one", "two"]) {
            #expect(await running.conclusion().file?.url == bench.url(name))
            #expect(bench.bytes(name) == Array("abcdef".utf8))
        }
        #expect(bench.names() == ["one", "two"])
    }

    @Test func `removePart deletes only the partial file of the same destination and source`() async throws {
        let bench = try DownloadBench()
        let url = bench.server.url("/file")
        let folder = DownloadDestination.folder(bench.folder)
        for destination in [DownloadDestination.file(bench.url("file")), folder] {
            try await bench.leavePart(to: destination)
            #expect(bench.names().count == 2)
            #expect(try !DownloadDestination.file(bench.url("other")).removePart(of: url))
            #expect(try !folder.removePart(of: bench.server.url("/other")))
            let keyed = with(DownloadOptions()) { $0.resumeKey = "key" }
            #expect(try !folder.removePart(of: url, options: keyed))
            #expect(bench.names().count == 2)
            #expect(try destination.removePart(of: url))
            #expect(bench.names() == [])
            #expect(try !destination.removePart(of: url))
            #expect(try await bench.download(to: destination).file?.resumedBytes == 0)
            // A complete file stays.
            #expect(try !destination.removePart(of: url))
            #expect(bench.names() == ["file"])
            try FileManager.default.removeItem(at: bench.url("file"))
        }
        #expect(try !DownloadDestination.file(bench.url("none/file")).removePart(of: url))
        #expect(try !DownloadDestination.temporary.removePart(of: url))
        #expect(bench.names() == [])
    }

    @Test func `removePart throws an error if the system does not remove the partial file`() async throws {
        let bench = try DownloadBench()
        try await bench.leavePart()
        let (destination, url) = (DownloadDestination.file(bench.url("file")), bench.server.url("/file"))
        for suffix in [".metadata", ".part"] {
            let options = with(DownloadOptions()) {
                $0.files = FileSystem { call in
                    let isRefused = call.kind == .remove && call.name?.description.hasSuffix(suffix) == true
                    return isRefused ? .fail(EACCES) : .proceed
                }
            }
            let error = #expect(throws: NetworkError.self) { try destination.removePart(of: url, options: options) }
            #expect(error?.code == .fileUnwritable)
            #expect(bench.names().contains { $0.hasSuffix(suffix) })
        }
    }

    @Test func `removePart leaves the metadata of a download that begins in the meantime`() async throws {
        let bench = try DownloadBench()
        try await bench.leavePart()
        let removed = EventRecorder<String>()
        let options = with(DownloadOptions()) {
            $0.files = FileSystem { call in
                let suffix = call.name?.description.split(separator: ".").last
                if call.kind == .remove, let suffix { removed.record(String(suffix)) }
                return .proceed
            }
        }
        let destination = DownloadDestination.file(bench.url("file"))
        #expect(try destination.removePart(of: bench.server.url("/file"), options: options))
        // Another download can use the names as soon as the partial file is gone.
        #expect(removed.events.contains("metadata") && removed.events.last == "part")
        #expect(bench.names() == [])
    }

    @Test func `the partial file of a running download is not removed`() async throws {
        let bench = try DownloadBench()
        let gate = Gate()
        let whole = DownloadBench.resource()
        bench.server.route("GET", "/file") { whole.answer(to: $0).after(gate) }
        let running = try bench.start(to: .file(bench.url("file")))
        _ = await bench.server.heads(atLeast: 1)
        let error = #expect(throws: NetworkError.self) {
            try DownloadDestination.file(bench.url("file")).removePart(of: bench.server.url("/file"))
        }
        #expect(error?.code == .destinationBusy)
        gate.open()
        #expect(await running.conclusion().file != nil)
    }
}
