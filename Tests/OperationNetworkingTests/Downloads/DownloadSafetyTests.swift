// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct DownloadSafetyTests {
    private let bench: DownloadBench

    init() throws {
        bench = try DownloadBench()
    }

    @Test(arguments: [
        ("attachment; filename=\"report.pdf\"", "report.pdf"), ("attachment; filename=\"../../evil\"", "evil"),
        ("attachment; filename*=UTF-8''..%2F..%2Fevil", "evil"), ("attachment; filename=\"/etc/passwd\"", "passwd"),
        ("attachment; filename=\"..\"", "file"), ("attachment; filename=\".bashrc\"", "bashrc"),
        ("attachment; filename*=UTF-8''%00; filename=\"..\\\\x\"", "file"), ("", "file"),
    ])
    func `a file gets its name from the server, and never leaves its folder`(field: String, name: String) async throws {
        let resource = DownloadBench.resource(1000)
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
    func `a download writes through no planted file with the name of its partial file`(planted: Planted) async throws {
        let bench = try DownloadBench(serving: DownloadBench.resource())
        // A download that is cut off reveals the name of the partial file.
        let whole = DownloadBench.resource()
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
        #expect(bench.bytes("file").map { TestPattern.matches($0) && $0.count == DownloadBench.size } == true)
        #expect(bench.names() == ["file", "victim"])
    }

    @Test func `links with the names of the metadata files are neither read nor written through`() async throws {
        let whole = DownloadBench.resource()
        bench.server.route("GET", "/file") { whole.answer(to: $0).cut(at: 100_000) }
        _ = try await bench.download(to: .file(bench.url("file")))
        let metadata = try #require(bench.metadataURL)
        try FileManager.default.moveItem(at: metadata, to: bench.url("victim"))
        let victim = bench.bytes("victim")
        for name in [
            metadata, metadata.deletingLastPathComponent().appendingPathComponent(metadata.lastPathComponent + ".new"),
        ] {
            try FileManager.default.createSymbolicLink(at: name, withDestinationURL: bench.url("victim"))
        }
        bench.serve(whole)
        #expect(try await bench.download(to: .file(bench.url("file"))).file?.resumedBytes == 0)
        #expect(bench.bytes("victim") == victim)
        #expect(bench.names() == ["file", "victim"])
    }

    @Test(arguments: [true, false])
    func `a file that replaced the partial file is neither moved nor removed`(fails: Bool) async throws {
        let (half, gate) = (Gate(), Gate())
        let bytes = TestPattern.bytes(count: DownloadBench.size)
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

    enum Untrusted: CaseIterable {
        case writablePart, strangersPart, writableMetadata, strangersMetadata, linkedMetadata
    }

    @Test(arguments: Untrusted.allCases)
    func `a partial file or metadata that others could have written is not resumed`(untrusted: Untrusted) async throws {
        try await bench.leavePart()
        let (part, metadata) = (try #require(bench.partURL), try #require(bench.metadataURL))
        // A user with write access to the partial file may have it open.
        let stranger = try FileHandle(forUpdating: part)
        switch untrusted {
        case .writablePart: #expect(chmod(part.path, 0o622) == 0)
        case .writableMetadata: #expect(chmod(metadata.path, 0o620) == 0)
        case .linkedMetadata: try FileManager.default.linkItem(at: metadata, to: bench.url("link"))
        case .strangersPart, .strangersMetadata:
            guard chown(untrusted == .strangersPart ? part.path : metadata.path, 54321, 54321) == 0 else {
                return print("SKIPPED: this process may not give files away, so no stranger's file was planted.")
            }
        }
        let conclusion = try await bench.download(to: .file(bench.url("file")))
        #expect(conclusion.file?.resumedBytes == 0, "\(conclusion)")
        #expect(bench.server.requests.last?["Range"] == nil)
        if [.writablePart, .strangersPart].contains(untrusted) {
            try stranger.seek(toOffset: 0)
            try stranger.write(contentsOf: Data("evil".utf8))
        }
        try stranger.close()
        #expect(bench.holds("file"))
        #expect(bench.names() == ["file"] + (untrusted == .linkedMetadata ? ["link"] : []))
    }

    @Test(arguments: [
        ("../evil", "evil"), ("b/../evil", "evil"), ("a/b", "b"), ("..", "download"), (".", "download"),
        ("", "download"),
        (".bashrc", "bashrc"), ("a\u{0}b", "b"),
    ])
    func `a file name from the metadata is cleaned like one from the server`(given: String, name: String) async throws {
        try FileManager.default.createDirectory(at: bench.url("in/a"), withIntermediateDirectories: true)
        try await bench.leavePart(to: .folder(bench.url("in")))
        try bench.changeMetadata(in: "in") { $0.fileName = given }
        let conclusion = try await bench.download(to: .folder(bench.url("in")))
        #expect(conclusion.file?.url == bench.url("in/\(name)"), "\(conclusion)")
        #expect((conclusion.file?.resumedBytes ?? 0) > 300_000)
        #expect(bench.holds("in/\(name)"))
        #expect(bench.names() == ["in"])
        #expect(bench.names("in") == ["a", name].sorted())
        #expect(bench.names("in/a") == [])
    }

    @Test(arguments: [DownloadValidator.entityTag("\"a\nX: b\""), .entityTag("W/\"a\""), .date("a\r\nX: b")])
    func `metadata with an invalid validator is not used to resume`(validator: DownloadValidator) async throws {
        try await bench.leavePart()
        try bench.changeMetadata(in: "") { $0.validator = validator }
        let conclusion = try await bench.download(to: .file(bench.url("file")))
        #expect(conclusion.file?.resumedBytes == 0, "\(conclusion)")
        #expect(bench.server.requests.last?["If-Range"] == nil)
        #expect(bench.holds("file"))
    }

    @Test func `a partial file that another download finished before it was claimed is not written to`() async throws {
        let bench = try DownloadBench(serving: DownloadBench.resource())
        let stop = StoppedCall(at: .claim)
        stop.arm()
        let options = with(DownloadOptions()) { $0.existingItem = .replace }
        let slow = try bench.start(to: .file(bench.url("file")), options: options, files: stop.files)
        await stop.reached.passage()
        // The slow download finds the partial file that the other download created and then completed.
        #expect(try await bench.download(to: .file(bench.url("file"))).file != nil)
        let finished = try FileHandle(forReadingFrom: bench.url("file"))
        bench.server.route("GET", "/file") { _ in .bytes([1, 2, 3]) }
        stop.passes.open()
        let conclusion = await slow.conclusion()
        #expect(conclusion.file?.length == 3, "\(conclusion)")
        #expect(bench.bytes("file") == [1, 2, 3])
        #expect(bench.names() == ["file"])
        // The first file was replaced, not written to.
        #expect(try finished.readToEnd()?.count == DownloadBench.size)
        try finished.close()
    }

    @Test func `the metadata of a download that begins right after another one is not removed`() async throws {
        let bench = try DownloadBench(serving: DownloadBench.resource())
        let options = with(DownloadOptions()) { $0.existingItem = .replace }
        let (renamed, ended, continues) = (Gate(), Gate(), Gate())
        let files = FileSystem { call in
            // The call after the final rename.
            if renamed.isOpen, !ended.isOpen {
                ended.open()
                continues.wait()
            }
            if call.kind == .rename, call.name?.description.hasSuffix(".part") == true { renamed.open() }
            return .proceed
        }
        let first = try bench.start(to: .file(bench.url("file")), options: options, files: files)
        await ended.passage()
        let whole = DownloadBench.resource()
        bench.server.route("GET", "/file") { request in
            whole.answer(to: request).cut(at: 400_000, by: .stall)
        }
        let second = try bench.start(to: .file(bench.url("file")), options: options)
        // The metadata of the first download still exists. The second download removes the metadata before it writes
        // any bytes.
        try await waitUntil("the second one has its metadata") {
            let part = bench.partURL.flatMap { bench.bytes($0.lastPathComponent) }
            return part?.count ?? 0 >= 64 << 10 && bench.metadataURL != nil
        }
        continues.open()
        #expect(await first.conclusion().file != nil)
        #expect(bench.metadataURL != nil)
        second.task.cancel()
        #expect(await second.conclusion().error?.code == .cancelled)
        bench.serve(whole)
        let third = try await bench.download(to: .file(bench.url("file")), options: options)
        #expect((third.file?.resumedBytes ?? 0) > 0)
        #expect(bench.holds("file"))
        #expect(bench.names() == ["file"])
    }

    @Test func `a file that replaces the partial file just before the final rename causes an error`() async throws {
        let bench = try DownloadBench(serving: DownloadBench.resource())
        let files = FileSystem { call in
            guard call.kind == .renameExclusively, let part = bench.partURL else { return .proceed }
            try? FileManager.default.removeItem(at: part)
            try? Data("theirs".utf8).write(to: part)
            return .proceed
        }
        let conclusion = try await bench.download(to: .file(bench.url("file")), files: files)
        #expect(conclusion.error?.code == .fileUnwritable, "\(conclusion)")
        #expect(bench.bytes("file") == Array("theirs".utf8))
    }

    enum Taken: CaseIterable { case pipe, socket, device, folder, fullFolder }

    /// Row 80 of the fault catalogue.
    @Test(.timeLimit(.minutes(3)), arguments: Taken.allCases)
    func `a destination that is a pipe, a socket, a device or a folder is an error, and is not opened`(
        taken: Taken
    ) async throws {
        let bench = try DownloadBench(serving: DownloadBench.resource())
        switch taken {
        case .pipe: #expect(mkfifo(bench.url("file").path, 0o600) == 0)
        case .socket:
            guard mknod(bench.url("file").path, S_IFSOCK | 0o600, 0) == 0 else {
                return print("SKIPPED: this system makes no sockets by mknod.")
            }
        case .device:
            // The numbers identify the null device. A call that opened it would not fail.
            guard mknod(bench.url("file").path, S_IFCHR | 0o600, 0x103) == 0 else {
                return print("SKIPPED: this process may not make devices.")
            }
        case .folder, .fullFolder:
            let inner = taken == .folder ? "file" : "file/inner"
            try FileManager.default.createDirectory(at: bench.url(inner), withIntermediateDirectories: true)
        }
        let opened = Locked<[String]>([])
        let files = FileSystem { call in
            if call.kind == .open, let name = call.name { opened.withLock { $0.append(name.description) } }
            return .proceed
        }
        var options = DownloadOptions()
        for (rule, code) in [
            (ExistingItemRule.refuse, NetworkError.Code.destinationExists), (.replace, .fileUnwritable),
        ] {
            options.existingItem = rule
            let conclusion = try await bench.download(to: .file(bench.url("file")), options: options, files: files)
            #expect(conclusion.error?.code == code, "\(conclusion)")
        }
        #expect(opened.withLock { !$0.contains("file") })
        #expect(bench.server.counts.connections == 0)
        #expect(bench.names() == ["file"])
        // The same applies if the item is used as a destination folder.
        guard taken != .folder, taken != .fullFolder else { return }
        let inside = try await bench.download(to: .folder(bench.url("file")), options: options, files: files)
        #expect(inside.error?.code == .fileUnwritable, "\(inside)")
        #expect(bench.names() == ["file"])
    }

    /// Returns the permissions of a new file after the `umask` was applied.
    private func made(_ permissions: Int, _ bench: DownloadBench) throws -> Int {
        let file = open(bench.url("made").path, O_WRONLY | O_CREAT | O_EXCL, mode_t(permissions))
        #expect(file >= 0)
        close(file)
        let result = try #require(bench.permissions("made"))
        try FileManager.default.removeItem(at: bench.url("made"))
        return result
    }

    @Test(arguments: [0o644, 0o600, 0o444, 0o400, 0o777, 0o200])
    func `a partial file is accessible only to its owner, and the complete file gets the requested permissions`(
        permissions: Int
    ) async throws {
        let bench = try DownloadBench()
        let options = with(DownloadOptions()) { $0.permissions = UInt16(permissions) }
        try await bench.leavePart(options: options)
        for url in [bench.partURL, bench.metadataURL] {
            #expect(bench.permissions(try #require(url).lastPathComponent) == 0o600)
        }
        let conclusion = try await bench.download(to: .file(bench.url("file")), options: options)
        #expect((conclusion.file?.resumedBytes ?? 0) > 300_000, "\(conclusion)")
        #expect(bench.permissions("file") == (try made(permissions, bench)))
        #expect(bench.names() == ["file"])
    }

    #if os(macOS) || os(Linux)
        // Runs in a separate process, because all threads of a process have the same `umask`.
        @Test func `a download uses the umask of the time at which it begins`() async throws {
            await #expect(processExitsWith: .success) {
                let bench = try DownloadBench(serving: DownloadBench.resource(1_000))
                var options = DownloadOptions()
                options.permissions = 0o666
                for (name, mask) in [("one", 0o022), ("two", 0o077), ("three", 0o022), ("four", 0o007)] {
                    umask(mode_t(mask))
                    let conclusion = try await bench.download(to: .file(bench.url(name)), options: options)
                    #expect(bench.permissions(name) == 0o666 & ~mask, "\(name) \(conclusion)")
                }
            }
        }
    #endif

    @Test func `a resumed file gets the permissions of the current download`() async throws {
        let bench = try DownloadBench()
        var options = DownloadOptions()
        options.permissions = 0o600
        try await bench.leavePart(options: options)
        // An older version created partial files with the permissions of the final file.
        #expect(chmod(try #require(bench.partURL).path, 0o644) == 0)
        options.permissions = 0o640
        let conclusion = try await bench.download(to: .file(bench.url("file")), options: options)
        #expect((conclusion.file?.resumedBytes ?? 0) > 300_000, "\(conclusion)")
        #expect(bench.permissions("file") == (try made(0o640, bench)))
    }

    @Test func `a partial file that cannot be opened is replaced by a new one`() async throws {
        let bench = try DownloadBench()
        try await bench.leavePart()
        let isFirst = Locked(true)
        let files = FileSystem { call in
            guard call.kind == .open, call.name?.description.hasSuffix(".part") == true else { return .proceed }
            return isFirst.withLock { exchange(&$0, with: false) } ? .fail(EACCES) : .proceed
        }
        let conclusion = try await bench.download(to: .file(bench.url("file")), files: files)
        #expect(conclusion.file?.resumedBytes == 0, "\(conclusion)")
        #expect(bench.holds("file"))
        #expect(bench.names() == ["file"])
    }
}
