// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(Rounds.timeLimit))
struct DownloadTests {
    private static let size = 900_000

    private func bench(_ options: LoopbackServer.Options = .init()) throws -> DownloadBench {
        try DownloadBench(try #require(SessionKind.allCases.first), options)
    }

    private func resource(
        _ size: Int = size, from start: Int = 0, etag: String? = "\"one\"", date: String? = nil
    ) -> LoopbackResource {
        LoopbackResource(.bytes(TestPattern.bytes(from: start, count: size)), etag: etag, lastModified: date)
    }

    @Test func `to a temporary file, which is handed over`() async throws {
        let bench = try bench()
        bench.serve(resource())
        let file = try #require(try await bench.download(to: .temporary).file)
        defer { try? FileManager.default.removeItem(at: file.url) }
        #expect(TestPattern.matches(Array(try Data(contentsOf: file.url))))
        #expect(file.length == Int64(Self.size))
        #expect(file.isLengthKnown)
        #expect(file.resumedBytes == 0)
        let attributes = try FileManager.default.attributesOfItem(atPath: file.url.path)
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
        #expect(bench.server.requests.first?["Accept-Encoding"] == "identity")
        #expect(bench.server.violations == [])
    }

    @Test func `to a place whose folders are made, and nothing else is left`() async throws {
        let bench = try bench()
        bench.serve(resource())
        let conclusion = try await bench.download(to: .file(bench.url("a/b/file")))
        #expect(conclusion.file?.url == bench.url("a/b/file"))
        #expect(bench.names("a/b") == ["file"])
        #expect(bench.bytes("a/b/file").map { TestPattern.matches($0) && $0.count == Self.size } == true)
    }

    @Test func `an empty file is a file`() async throws {
        let bench = try bench()
        bench.serve(resource(0))
        #expect(try await bench.download(to: .file(bench.url("file"))).file?.length == 0)
        #expect(bench.bytes("file") == [])
        #expect(bench.names() == ["file"])
    }

    @Test func `what is there stays, and nothing is asked`() async throws {
        let bench = try bench()
        bench.serve(resource())
        try Data("old".utf8).write(to: bench.url("file"))
        let conclusion = try await bench.download(to: .file(bench.url("file")))
        #expect(conclusion.error?.code == .destinationExists)
        #expect(bench.bytes("file") == Array("old".utf8))
        #expect(bench.names() == ["file"])
        #expect(bench.server.counts.heads == 0)
    }

    @Test func `what is there is replaced in one step, a link itself and not what it leads to`() async throws {
        let bench = try bench()
        bench.serve(resource())
        try Data("victim".utf8).write(to: bench.url("victim"))
        try FileManager.default.createSymbolicLink(at: bench.url("file"), withDestinationURL: bench.url("victim"))
        var options = DownloadOptions()
        options.existingItem = .replace
        #expect(try await bench.download(to: .file(bench.url("file")), options: options).file != nil)
        #expect(bench.bytes("victim") == Array("victim".utf8))
        #expect(bench.bytes("file")?.count == Self.size)
        try FileManager.default.createDirectory(at: bench.url("folder"), withIntermediateDirectories: false)
        let onFolder = try await bench.download(to: .file(bench.url("folder")), options: options)
        #expect(onFolder.error?.code == .fileUnwritable)
        #expect(bench.names() == ["file", "folder", "victim"])
    }

    @Test(arguments: [
        ("attachment; filename=\"report.pdf\"", "report.pdf"), ("attachment; filename=\"../../evil\"", "evil"),
        ("attachment; filename*=UTF-8''..%2F..%2Fevil", "evil"), ("attachment; filename=\"/etc/passwd\"", "passwd"),
        ("attachment; filename=\"..\"", "file"), ("attachment; filename=\".bashrc\"", "bashrc"),
        ("attachment; filename*=UTF-8''%00; filename=\"..\\\\x\"", "file"), ("", "file"),
    ])
    func `into a folder under the server's name, and never outside`(field: String, name: String) async throws {
        let bench = try bench()
        let resource = resource(1000)
        bench.server.route("GET", "/file") { resource.answer(to: $0).with("Content-Disposition", field) }
        try FileManager.default.createDirectory(at: bench.url("in/ner"), withIntermediateDirectories: true)
        let file = try await bench.download(to: .folder(bench.url("in/ner"))).file
        #expect(file?.url == bench.url("in/ner/\(name)"))
        #expect(bench.names("in/ner") == [name])
        #expect(bench.names("in") == ["ner"])
        #expect(bench.names() == ["in"])
        let again = try await bench.download(to: .folder(bench.url("in/ner")))
        #expect(again.error?.code == .destinationExists)
        #expect(bench.names("in/ner") == [name])
    }

    enum Planted: CaseIterable { case link, hardLink, pipe, danglingLink }

    @Test(arguments: Planted.allCases)
    func `nothing that was laid under the part's name is written through`(planted: Planted) async throws {
        let bench = try bench()
        bench.serve(resource())
        // The name is found out by a download that is cut.
        let whole = resource()
        bench.server.route("GET", "/cut") { whole.answer(to: $0).cut(at: 100_000) }
        _ = try await bench.download("/cut", to: .file(bench.url("file")))
        let part = try #require(bench.names().first { $0.hasSuffix(".part") })
        try FileManager.default.removeItem(at: bench.url(part))
        try Data("victim".utf8).write(to: bench.url("victim"))
        switch planted {
        case .link:
            try FileManager.default.createSymbolicLink(at: bench.url(part), withDestinationURL: bench.url("victim"))
        case .hardLink: try FileManager.default.linkItem(at: bench.url("victim"), to: bench.url(part))
        case .pipe: #expect(mkfifo(bench.url(part).path, 0o600) == 0)
        case .danglingLink:
            try FileManager.default.createSymbolicLink(at: bench.url(part), withDestinationURL: bench.url("new"))
        }
        #expect(try await bench.download(to: .file(bench.url("file"))).file?.resumedBytes == 0)
        #expect(bench.bytes("victim") == Array("victim".utf8))
        #expect(bench.bytes("file").map { TestPattern.matches($0) && $0.count == Self.size } == true)
        #expect(bench.names() == ["file", "victim"])
    }

    @Test func `links under the names of the card are neither read nor written through`() async throws {
        let bench = try bench()
        let whole = resource()
        bench.server.route("GET", "/file") { whole.answer(to: $0).cut(at: 100_000) }
        _ = try await bench.download(to: .file(bench.url("file")))
        let card = try #require(cardURL(bench))
        try FileManager.default.moveItem(at: card, to: bench.url("victim"))
        let victim = bench.bytes("victim")
        for name in [card, card.deletingLastPathComponent().appendingPathComponent(card.lastPathComponent + ".new")] {
            try FileManager.default.createSymbolicLink(at: name, withDestinationURL: bench.url("victim"))
        }
        bench.serve(whole)
        #expect(try await bench.download(to: .file(bench.url("file"))).file?.resumedBytes == 0)
        #expect(bench.bytes("victim") == victim)
        #expect(bench.names() == ["file", "victim"])
    }

    @Test(arguments: [true, false])
    func `a file that somebody put in the part's place is neither moved nor removed`(fails: Bool) async throws {
        let bench = try bench()
        let (half, gate) = (Gate(), Gate())
        let bytes = TestPattern.bytes(count: Self.size)
        bench.server.route("GET", "/file") { _ in
            LoopbackAnswer(
                .head(200, ["Content-Length": "\(bytes.count)"]), .send(Array(bytes[..<100_000])), .stall(until: gate),
                fails ? .reset : .send(Array(bytes[100_000...])))
        }
        async let conclusion = bench.download(to: .file(bench.url("file"))) { progress, _ in
            if progress.received == 100_000 { half.open() }
        }
        await half.passage()
        let part = try #require(bench.names().first { $0.hasSuffix(".part") })
        try FileManager.default.removeItem(at: bench.url(part))
        try Data("theirs".utf8).write(to: bench.url(part))
        gate.open()
        #expect(try await conclusion.error != nil)
        #expect(bench.names() == [part])
        #expect(bench.bytes(part) == Array("theirs".utf8))
    }

    /// Downloads a first piece that is cut off, and then with another resource behind the same address.
    private func resumed(
        first: LoopbackResource, then second: @escaping @Sendable (LoopbackRequest) -> LoopbackAnswer,
        options: DownloadOptions = .init(), bench: DownloadBench
    ) async throws -> DownloadConclusion {
        bench.server.route("GET", "/file") { first.answer(to: $0).cut(at: 400_000, by: .close) }
        let cut = try await bench.download(to: .file(bench.url("file")), options: options)
        #expect(cut.error?.code == .truncatedBody || cut.error?.code == .connectionLost, "\(cut)")
        bench.server.route("GET", "/file", second)
        return try await bench.download(to: .file(bench.url("file")), options: options)
    }

    @Test func `a download that was cut goes on from its bytes`() async throws {
        let bench = try bench()
        let resource = resource()
        let file = try await resumed(first: resource, then: { resource.answer(to: $0) }, bench: bench).file
        let offset = try #require(file?.resumedBytes)
        #expect(offset > 300_000)
        let request = try #require(bench.server.requests.last)
        #expect(request["Range"] == "bytes=\(offset)-")
        #expect(request["If-Range"] == "\"one\"")
        #expect(bench.server.requests.count == 2)
        #expect(bench.bytes("file").map { TestPattern.matches($0) && $0.count == Self.size } == true)
        #expect(bench.names() == ["file"])
        #expect(bench.server.violations == [])
    }

    @Test func `one by date goes on only if the date is old enough`() async throws {
        for (sent, goesOn) in [("Sun, 06 Nov 1994 09:49:37 GMT", true), ("Sun, 06 Nov 1994 08:49:38 GMT", false)] {
            let bench = try bench()
            var resource = resource(etag: nil, date: "Sun, 06 Nov 1994 08:49:37 GMT")
            resource.fields = [LoopbackField("Date", sent)]
            let served = resource
            let file = try await resumed(first: served, then: { served.answer(to: $0) }, bench: bench).file
            #expect((file?.resumedBytes ?? 0 > 0) == goesOn)
            #expect((bench.server.requests.last?["If-Range"] == "Sun, 06 Nov 1994 08:49:37 GMT") == goesOn)
            #expect(bench.bytes("file").map { TestPattern.matches($0) && $0.count == Self.size } == true)
        }
    }

    @Test(arguments: ["W/\"one\"", nil])
    func `without a strong validator nothing is kept, and it begins anew`(etag: String?) async throws {
        let bench = try bench()
        let resource = resource(etag: etag)
        let file = try await resumed(first: resource, then: { resource.answer(to: $0) }, bench: bench).file
        #expect(file?.resumedBytes == 0)
        #expect(bench.server.requests.last?["Range"] == nil)
        #expect(bench.bytes("file")?.count == Self.size)
    }

    @Test func `a file that changed on the server begins anew and is never mixed`() async throws {
        let bench = try bench()
        let new = resource(700_000, from: 5, etag: "\"two\"")
        let file = try await resumed(first: resource(), then: { new.answer(to: $0) }, bench: bench).file
        #expect(file?.resumedBytes == 0)
        #expect(bench.bytes("file").map { TestPattern.matches($0, from: 5) && $0.count == 700_000 } == true)
        #expect(bench.server.requests.count == 2)
        #expect(bench.names() == ["file"])
    }

    @Test func `a server that knows no ranges sends all of it`() async throws {
        let bench = try bench()
        var whole = resource()
        whole.acceptsRanges = false
        let served = whole
        let file = try await resumed(first: resource(), then: { served.answer(to: $0) }, bench: bench).file
        #expect(file?.resumedBytes == 0)
        #expect(bench.bytes("file").map { TestPattern.matches($0) && $0.count == Self.size } == true)
    }

    @Test(arguments: [
        "bytes 0-899999/900000", "bytes 7-899999/900000", "bytes 300000-899999/*", "bytes 300000-899999/900001", "x",
        nil,
    ])
    func `a part that does not fit is asked for anew, once`(range: String?) async throws {
        let bench = try bench()
        let whole = resource()
        let file = try await resumed(
            first: whole,
            then: { request in
                guard request["Range"] != nil else { return whole.answer(to: request) }
                let fields = range.map { [LoopbackField("Content-Range", $0)] } ?? []
                return .bytes([UInt8](repeating: 0, count: 5000), status: 206, fields: fields)
            }, bench: bench
        ).file
        #expect(file?.resumedBytes == 0)
        #expect(bench.server.requests.count == 3)
        #expect(bench.bytes("file").map { TestPattern.matches($0) && $0.count == Self.size } == true)
        #expect(bench.names() == ["file"])
    }

    @Test func `a range that is refused begins anew, for the file is another`() async throws {
        let bench = try bench()
        let small = resource(1000, etag: "\"two\"")
        let file = try await resumed(
            first: resource(),
            then: { request in
                guard request["Range"] != nil else { return small.answer(to: request) }
                return .status(416, ["Content-Range": "bytes */1000"])
            }, bench: bench
        ).file
        #expect(file?.length == 1000)
        #expect(bench.server.requests.count == 3)
    }

    @Test func `a server that sends small pieces is asked for each`() async throws {
        let bench = try bench()
        let bytes = TestPattern.bytes(count: Self.size)
        let file = try await resumed(
            first: resource(),
            then: { request in
                let start = Int(request["Range"]?.dropFirst(6).dropLast() ?? "") ?? 0
                let end = min(start + 200_000, bytes.count)
                return .bytes(
                    Array(bytes[start..<end]), status: 206,
                    fields: [
                        LoopbackField("Content-Range", "bytes \(start)-\(end - 1)/\(bytes.count)"),
                        LoopbackField("ETag", "\"one\""),
                    ])
            }, bench: bench
        ).file
        #expect(file?.length == Int64(Self.size))
        #expect(bench.server.requests.count >= 4)
        let isSame = bench.bytes("file") == bytes
        #expect(isSame)
    }

    @Test func `an answer that is no file leaves what is there`() async throws {
        let bench = try bench()
        let whole = resource()
        let conclusion = try await resumed(first: whole, then: { _ in .text("busy", status: 503) }, bench: bench)
        guard case .answered(let head, let body) = conclusion else { return #expect(Bool(false), "\(conclusion)") }
        #expect(head.status == 503)
        #expect(body == Array("busy".utf8))
        #expect(bench.names().count == 2)
        bench.serve(whole)
        let file = try await bench.download(to: .file(bench.url("file"))).file
        #expect((file?.resumedBytes ?? 0) > 0)
        #expect(bench.bytes("file").map { TestPattern.matches($0) && $0.count == Self.size } == true)
        let missing = try await bench.download("/none", to: .file(bench.url("other/none")))
        guard case .answered = missing else { return #expect(Bool(false), "\(missing)") }
        #expect(bench.names() == ["file"])
    }

    @Test func `one object goes on with a temporary file, too`() async throws {
        let bench = try bench()
        let whole = resource()
        bench.server.route("GET", "/file") { request in
            request["Range"] == nil ? whole.answer(to: request).cut(at: 400_000) : whole.answer(to: request)
        }
        let work = Download(to: .temporary)
        let request = try bench.bench.request("GET", "/file")
        func attempt() async -> DownloadConclusion {
            await withCheckedContinuation { continuation in
                work.prepare(request) { result in
                    guard case .success(let request) = result else { return }
                    let receiver = work.makeReceiver { continuation.resume(returning: $0) }
                    bench.bench.session.makeTask(with: request, receiver: receiver).resume()
                }
            }
        }
        #expect(await attempt().error != nil)
        let file = try #require(await attempt().file)
        defer { try? FileManager.default.removeItem(at: file.url) }
        #expect(file.resumedBytes > 300_000)
        #expect(TestPattern.matches(Array(try Data(contentsOf: file.url))))
        await withCheckedContinuation { continuation in work.close { continuation.resume() } }
    }

    @Test func `cancelled in the middle, it keeps its part, or nothing if it may not`() async throws {
        for keeps in [true, false] {
            let bench = try bench()
            let gate = Gate()
            bench.server.route("GET", "/file") { _ in
                LoopbackAnswer(
                    .head(200, ["Content-Length": "900000", "ETag": "\"one\""]),
                    .send(TestPattern.bytes(count: 300_000)), .stall(until: gate))
            }
            var options = DownloadOptions()
            options.keepsPart = keeps
            let conclusion = try await bench.download(to: .file(bench.url("new/file")), options: options) {
                progress, run in
                if progress.received == 300_000 { run?.cancel() }
            }
            #expect(conclusion.error?.code == .cancelled)
            #expect(bench.names("new").count == (keeps ? 2 : 0))
            #expect(bench.names() == (keeps ? ["new"] : []))
            gate.open()
            bench.serve(resource())
            let file = try await bench.download(to: .file(bench.url("new/file"))).file
            #expect(file?.resumedBytes == (keeps ? 300_000 : 0))
            #expect(bench.bytes("new/file").map { TestPattern.matches($0) && $0.count == Self.size } == true)
        }
    }

    @Test func `another URL begins anew, unless it is said to be of the same file`() async throws {
        for key in [nil, "the film"] {
            let bench = try bench()
            let whole = resource()
            var options = DownloadOptions()
            options.resumeKey = key
            bench.server.route("GET", "/file") { request in
                request.query == "sign=1" ? whole.answer(to: request).cut(at: 400_000) : whole.answer(to: request)
            }
            _ = try await bench.download("/file?sign=1", to: .file(bench.url("file")), options: options)
            #expect(try String(contentsOf: try #require(cardURL(bench)), encoding: .utf8).contains("sign") == false)
            let file = try await bench.download("/file?sign=2", to: .file(bench.url("file")), options: options).file
            #expect((file?.resumedBytes ?? 0 > 0) == (key != nil))
            #expect(bench.bytes("file").map { TestPattern.matches($0) && $0.count == Self.size } == true)
            #expect(bench.names() == ["file"])
        }
    }

    private func cardURL(_ bench: DownloadBench) -> URL? {
        bench.names().first { $0.hasSuffix(".card") }.map { bench.url($0) }
    }

    @Test func `two downloads to one place: the second is refused, and the first goes on`() async throws {
        let bench = try bench()
        let gate = Gate()
        let whole = resource()
        bench.server.route("GET", "/file") { whole.answer(to: $0).after(gate) }
        async let first = bench.download(to: .file(bench.url("file")))
        _ = await bench.server.heads(atLeast: 1)
        let second = try await bench.download(to: .file(bench.url("file")))
        #expect(second.error?.code == .destinationBusy)
        gate.open()
        #expect(try await first.file != nil)
        #expect(bench.names() == ["file"])
    }

    @Test func `expected lengths and checksums`() async throws {
        let bench = try bench()
        bench.serve(resource())
        let bytes = TestPattern.bytes(count: Self.size)
        var options = DownloadOptions()
        options.expectedLength = 5
        #expect(try await bench.download(to: .file(bench.url("a")), options: options).error?.code == .unexpectedLength)
        options.expectedLength = Int64(Self.size)
        options.checksum = FileChecksum(algorithm: .sha256, bytes: SHA256.checksum(of: bytes, startingWith: SHA256()))
        #expect(try await bench.download(to: .file(bench.url("b")), options: options).file != nil)
        options.checksum = FileChecksum(algorithm: .md5, bytes: [UInt8](repeating: 0, count: 16))
        #expect(try await bench.download(to: .file(bench.url("c")), options: options).error?.code == .checksumMismatch)
        options.checksum = nil
        options.expectedLength = nil
        options.maximumLength = 899_999
        #expect(try await bench.download(to: .file(bench.url("d")), options: options).error?.code == .bodyTooLarge)
        #expect(bench.names() == ["b"])
    }

    @Test func `the checksum of a file that was gone on with is that of all its bytes`() async throws {
        let bytes = TestPattern.bytes(count: Self.size)
        for isRight in [true, false] {
            let bench = try bench()
            let whole = resource()
            var options = DownloadOptions()
            let sum = SHA256.checksum(of: isRight ? bytes : [1], startingWith: SHA256())
            options.checksum = FileChecksum(algorithm: .sha256, bytes: sum)
            let conclusion = try await resumed(
                first: whole, then: { whole.answer(to: $0) }, options: options, bench: bench)
            #expect((conclusion.file?.resumedBytes ?? 0 > 0) == isRight)
            #expect(conclusion.error?.code == (isRight ? nil : .checksumMismatch))
            #expect(bench.names() == (isRight ? ["file"] : []))
        }
    }

    @Test func `a body that ends with its connection is of unknown length`() async throws {
        let bench = try bench()
        bench.server.route("GET", "/file") { _ in .raw("HTTP/1.1 200 OK\r\n\r\nsome bytes") }
        let file = try await bench.download(to: .file(bench.url("file"))).file
        #expect(file?.isLengthKnown == false)
        #expect(file?.length == 10)
    }

    @Test func `a disk that is slower than the server holds the transfer`() async throws {
        let bench = try bench()
        bench.serve(LoopbackResource(.pattern(count: 64 << 20), etag: "\"one\""))
        let (reached, gate) = (Gate(), Gate())
        let isFirst = Locked(true)
        let files = FileSystem { call in
            if call.kind == .write, isFirst.withLock({ exchange(&$0, with: false) }) {
                // The card is written first; from then on the disk is stuck.
                return .proceed
            }
            if call.kind == .write, !gate.isOpen {
                reached.open()
                gate.wait()
            }
            return .proceed
        }
        async let conclusion = bench.download(to: .file(bench.url("file")), files: files)
        await reached.passage()
        let stuck = await bench.server.counts { _ in true }.sentBytes
        #expect(stuck < 32 << 20)
        gate.open()
        #expect(try await conclusion.file?.length == 64 << 20)
    }

    @Test func `whichever call to the system fails, there is a typed error or a whole file`() async throws {
        let numbers = [EIO, ENOSPC, EACCES]
        for number in numbers {
            for failing in 0..<60 {
                let bench = try bench()
                try Data("old".utf8).write(to: bench.url("file"))
                bench.serve(resource(300_000))
                let count = Locked(0)
                let files = FileSystem { call in
                    let index = count.withLock { count -> Int in
                        defer { count += 1 }
                        return count
                    }
                    return index == failing ? .fail(number) : .proceed
                }
                var options = DownloadOptions()
                options.existingItem = .replace
                let conclusion = try await bench.download(to: .file(bench.url("file")), options: options, files: files)
                let bytes = bench.bytes("file")
                if conclusion.file == nil {
                    #expect(conclusion.error != nil, "call \(failing), error \(number)")
                    #expect(bytes == Array("old".utf8) || bytes?.count == 300_000, "call \(failing), error \(number)")
                } else {
                    #expect(bytes.map { TestPattern.matches($0) && $0.count == 300_000 } == true)
                }
                let after = try await bench.download(to: .file(bench.url("file")), options: options)
                #expect(after.file != nil, "after call \(failing), error \(number): \(after)")
                #expect(bench.bytes("file").map { TestPattern.matches($0) && $0.count == 300_000 } == true)
                if count.withLock({ $0 }) <= failing { break }
            }
        }
    }

    @Test func `a gigabyte goes to the disk through little memory`() async throws {
        guard Rounds.isSoak else { return }
        let bench = try bench()
        bench.serve(LoopbackResource(.pattern(count: 1 << 30), etag: "\"one\""))
        let before = ResidentMemory.bytes
        let peak = Locked(0)
        let file = try await bench.download(to: .file(bench.url("file"))) { _, _ in
            let now = ResidentMemory.bytes
            peak.withLock { $0 = max($0, now) }
        }.file
        let growth = peak.withLock { $0 } - before
        #expect(file?.length == 1 << 30)
        print("soak: a download of 1 GiB to disk grew the process by \(growth >> 10) KiB")
        #expect(growth < 16 << 20)
    }
}
