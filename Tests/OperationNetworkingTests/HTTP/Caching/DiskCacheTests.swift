// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(2)))
struct DiskCacheTests {
    private let folder = CacheFolderFixture()
    private let home = "https://h.com/a"

    private static func bytes(_ count: Int, seed: UInt64 = 1) -> Data {
        var generator = SeededGenerator(seed: seed)
        return Data((0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) })
    }

    @Test(arguments: [0, 1, 65_535, 65_536, 65_537, 300_000])
    func `a stored body is served unchanged, also by a new cache instance`(count: Int) throws {
        let body = Self.bytes(count)
        let disk = folder.disk()
        #expect(try disk.keep(body, at: home))
        #expect(disk.body(home) == body)
        #expect(folder.disk().body(home) == body)
        #expect(disk.body("https://h.com/b") == nil)
        #expect(folder.files(".part").isEmpty)
        let modes = try folder.files("").map {
            try FileManager.default.attributesOfItem(atPath: $0.path)[.posixPermissions] as? NSNumber
        }
        #expect(modes.allSatisfy { $0?.intValue == 0o600 })
        let mode = try FileManager.default.attributesOfItem(atPath: folder.url.path)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o700)
    }

    @Test func `metadata or a body truncated at any byte is removed and never served`() throws {
        let body = Self.bytes(300)
        for suffix in [".metadata", ".body"] {
            let folder = CacheFolderFixture()
            try folder.disk().keep(body, at: home)
            let file = try #require(folder.files(suffix).first)
            let others = folder.files("").filter { $0 != file }
            let whole = try Data(contentsOf: file)
            let saved = try others.map { ($0, try Data(contentsOf: $0)) }
            for length in 0..<whole.count {
                try whole.prefix(length).write(to: file)
                let disk = folder.disk()
                #expect(disk.body(home) == nil, "\(suffix) cut at \(length)")
                #expect(disk.body(home) == nil)
                #expect(!FileManager.default.fileExists(atPath: file.path), "\(suffix) cut at \(length)")
                for (other, data) in saved { try data.write(to: other) }
            }
            try whole.write(to: file)
            #expect(folder.disk().body(home) == body)
        }
    }

    @Test func `metadata or a body in which any byte was changed is never served`() throws {
        let body = Self.bytes(300)
        for suffix in [".metadata", ".body"] {
            let folder = CacheFolderFixture()
            try folder.disk().keep(body, at: home)
            let file = try #require(folder.files(suffix).first)
            let saved = try folder.files("").map { ($0, try Data(contentsOf: $0)) }
            let whole = try Data(contentsOf: file)
            for index in 0..<whole.count {
                var damaged = whole
                damaged[index] ^= UInt8(1 << (index % 8))
                try damaged.write(to: file)
                #expect(folder.disk().body(home) == nil, "\(suffix) changed at \(index)")
                for (other, data) in saved { try data.write(to: other) }
            }
            try (whole + [0]).write(to: file)
            #expect(folder.disk().body(home) == nil)
        }
    }

    @Test func `after a crash at any system call, the old or the new body is served completely`()
        throws
    {
        let (old, new) = (Self.bytes(100_000, seed: 1), Self.bytes(100_001, seed: 2))
        var crash = 1
        while true {
            let folder = CacheFolderFixture()
            try folder.disk().keep(old, at: home)
            let count = Locked(0)
            // From that call on, nothing reaches the disk, as if the process was killed.
            let disk = folder.disk(CacheLimits()) { [crash] _ in
                count.withLock { count in
                    count += 1
                    return count >= crash ? .fail(EIO) : .proceed
                }
            }
            try disk.keep(new, at: home)
            let served = folder.disk().body(home)
            #expect(served == old || served == new, "crash at call \(crash)")
            if count.withLock({ $0 }) < crash { break }
            crash += 1
        }
        #expect(crash > 10)
    }

    @Test func `a body is never served incomplete after a failed write`() throws {
        for crash in 1...30 {
            let folder = CacheFolderFixture()
            let count = Locked(0)
            let disk = folder.disk(CacheLimits()) { call in
                guard call.kind == .write else { return .proceed }
                return count.withLock { count in
                    count += 1
                    return count == crash ? .fail(ENOSPC) : .shorten(10_000)
                }
            }
            let body = Self.bytes(100_000)
            try disk.keep(body, at: home)
            let served = folder.disk().body(home)
            #expect(served == nil || served == body, "failing write \(crash)")
            #expect(folder.files(".part").isEmpty)
        }
    }

    @Test func `a URL keeps eight variants, and the ninth replaces the oldest`() throws {
        let disk = folder.disk()
        let vary: HeaderFields = ["Cache-Control": "max-age=60", "Vary": "Accept-Language"]
        for index in 0..<9 {
            try disk.keep(Data("\(index)".utf8), at: home, to: ["Accept-Language": "\(index)"], headers: vary)
        }
        #expect(disk.body(home, for: ["Accept-Language": "0"]) == nil)
        for index in 1..<9 {
            #expect(disk.body(home, for: ["Accept-Language": "\(index)"]) == Data("\(index)".utf8))
        }
        #expect(folder.files(".body").count == 8)
        try disk.keep(Data("new".utf8), at: home, to: ["Accept-Language": "3"], headers: vary)
        #expect(disk.body(home, for: ["Accept-Language": "3"]) == Data("new".utf8))
        #expect(folder.files(".body").count == 8)
        disk.forget(home)
        #expect(folder.files("").map(\.lastPathComponent) == ["changes", "secret"])
    }

    @Test func `the cache never exceeds its limit and keeps the most recently used responses`() throws {
        let limits = CacheLimits(totalBytes: 100_000)
        let disk = folder.disk(limits)
        for index in 0..<60 {
            #expect(try disk.keep(Self.bytes(5_000), at: "https://h.com/\(index)"))
            #expect(disk.size() <= limits.totalBytes, "after \(index)")
            #expect(disk.body("https://h.com/0") != nil, "after \(index)")
        }
        #expect(disk.body("https://h.com/59") != nil)
        #expect(disk.body("https://h.com/1") == nil)
        #expect(disk.size() > limits.totalBytes / 2)
    }

    @Test func `a body that exceeds its limit is not stored and leaves no file`() throws {
        let disk = folder.disk(CacheLimits(totalBytes: 100_000))
        #expect(try !disk.keep(Self.bytes(12_501), at: home, chunk: 1000))
        #expect(try disk.keep(Self.bytes(12_500), at: home, chunk: 1000))
        let tiny = CacheFolderFixture()
        #expect(try !tiny.disk(CacheLimits(totalBytes: 0)).keep(Self.bytes(1), at: home))
        #expect(tiny.files("").map(\.lastPathComponent) == ["secret"])
        #expect(folder.files(".part").isEmpty)
    }

    @Test func `bodies that are written concurrently stay within the limit together`() throws {
        let disk = folder.disk(CacheLimits(totalBytes: 10_000, bodyBytes: 8_000))
        let writers = (0..<4).compactMap { _ in disk.openWriter() }
        var accepted = 0
        for _ in 0..<6 {
            for writer in writers where disk.append(Self.bytes(1000), to: writer, now: Date()) { accepted += 1 }
            #expect(disk.size() <= 10_000)
        }
        #expect(accepted >= 10)
    }

    @Test func `two instances that share a folder never serve an incomplete body`() throws {
        let limits = CacheLimits(totalBytes: 200_000, bodyBytes: 50_000)
        for seed in UInt64(0)..<20 {
            var generator = SeededGenerator(seed: seed)
            let disks = [folder.disk(limits), folder.disk(limits)]
            var known: [String: Set<Data>] = [:]
            for step in 0..<60 {
                let disk = disks[Int.random(in: 0...1, using: &generator)]
                let resource = "https://h.com/\(Int.random(in: 0..<6, using: &generator))"
                switch Int.random(in: 0..<10, using: &generator) {
                case 0: disk.forget(resource)
                case 1...4:
                    let body = Self.bytes(
                        Int.random(in: 0..<40_000, using: &generator), seed: seed << 32 | UInt64(step))
                    try disk.keep(body, at: resource)
                    known[resource, default: []].insert(body)
                default:
                    if let body = disk.body(resource) {
                        #expect(known[resource]?.contains(body) == true, "seed \(seed)")
                    }
                }
            }
            folder.empty()
        }
    }

    @Test func `concurrent threads with separate instances serve only complete bodies`() async throws {
        let url = folder.url
        let faults = Locked(0)
        let hits = Locked(0)
        try await TestThread.run {
            DispatchQueue.concurrentPerform(iterations: 4) { thread in
                let disk = DiskCache(folder: CacheFolder(url: url), limits: CacheLimits(totalBytes: 400_000))
                var generator = SeededGenerator(seed: UInt64(thread))
                for _ in 0..<150 {
                    let number = Int.random(in: 0..<8, using: &generator)
                    let resource = "https://h.com/\(number)"
                    if generator.chance(1, in: 3) {
                        // All bytes of a body are equal, so a mixed body is a fault.
                        let byte = UInt8.random(in: 0...255, using: &generator)
                        _ = try? disk.keep(
                            Data(repeating: byte, count: Int.random(in: 1..<40_000, using: &generator)), at: resource)
                    } else if generator.chance(1, in: 10) {
                        disk.forget(resource)
                    } else if let body = disk.body(resource) {
                        hits.withLock { $0 += 1 }
                        if !body.allSatisfy({ $0 == body.first }) { faults.withLock { $0 += 1 } }
                    }
                }
            }
        }
        #expect(faults.withLock { $0 } == 0)
        #expect(hits.withLock { $0 } > 20)
    }

    @Test func `a reader reads a body to its end although the cache was cleared`() throws {
        let disk = folder.disk()
        let body = Self.bytes(200_000)
        try disk.keep(body, at: home)
        let metadata = try #require(disk.metadata(home, now: CacheSamples.now))
        let reader = try #require(disk.openReader(metadata.variants[0].body, of: home, now: CacheSamples.now))
        folder.disk().forgetAll()
        var data = Data()
        while case .bytes(let part) = disk.read(reader) { data += part }
        #expect(data == body)
        #expect(disk.body(home) == nil)
    }

    @Test func `unknown files in the folder are kept, and symbolic links are not followed`() throws {
        let disk = folder.disk()
        try disk.keep(Data("x".utf8), at: home)
        let stranger = folder.url.appendingPathComponent("notes.txt")
        try Data("mine".utf8).write(to: stranger)
        let metadata = try #require(folder.files(".metadata").first)
        let elsewhere = folder.url.appendingPathComponent("elsewhere")
        try FileManager.default.moveItem(at: metadata, to: elsewhere)
        try FileManager.default.createSymbolicLink(at: metadata, withDestinationURL: elsewhere)
        #expect(disk.body(home) == nil)
        disk.forgetAll()
        #expect(try Data(contentsOf: stranger) == Data("mine".utf8))
    }

    @Test func `a revalidated response gets its new headers on disk as well`() throws {
        let disk = folder.disk()
        try disk.keep(Data("x".utf8), at: home)
        let variant = try #require(disk.metadata(home, now: CacheSamples.now)?.variants.first)
        let head = try CacheSamples.head(304, ["Cache-Control": "max-age=999"])
        let response = variant.response.freshened(
            by: head, to: [:], requested: CacheSamples.now, received: CacheSamples.now)
        disk.freshen(variant.body, with: response, at: home, now: CacheSamples.now)
        #expect(folder.disk().metadata(home, now: CacheSamples.now)?.responses == [response])
        #expect(disk.body(home) == Data("x".utf8))
    }

    @Test(arguments: ["the same", "another"])
    func `a response that is invalidated while it is written is not stored`(instance: String) throws {
        let disk = folder.disk()
        let forgetter = instance == "the same" ? disk : folder.disk()
        let forgets: [(String, (DiskCache) -> Void)] = [
            ("this one", { $0.forget(self.home) }), ("all", { $0.forgetAll() }),
            (
                "this one, and many after it",
                { disk in for index in 0..<100 { disk.forget("\(index == 0 ? self.home : "x")") } }
            ),
        ]
        let response = try CacheSamples.response(200, DiskCache.fresh)
        for (name, forget) in forgets {
            let writer = try #require(disk.openWriter())
            #expect(disk.append(Data("old".utf8), to: writer, now: CacheSamples.now))
            forget(forgetter)
            disk.commit(writer, response, at: home, now: CacheSamples.now)
            #expect(disk.body(home) == nil && folder.files(".body").isEmpty, "\(name)")
            // The same applies to a request sent before the invalidation whose response arrives afterward.
            let moment = disk.moment
            forget(forgetter)
            let late = try #require(disk.openWriter(since: moment))
            disk.commit(late, response, at: home, now: CacheSamples.now)
            #expect(disk.body(home) == nil && folder.files(".body").isEmpty, "\(name)")
        }
        let writer = try #require(disk.openWriter())
        forgetter.forget("https://h.com/other")
        disk.commit(writer, response, at: home, now: CacheSamples.now)
        #expect(disk.body(home) == Data())
    }

    @Test func `an unreadable or restarted change log counts as a change of every key`() {
        var changes = CacheChanges()
        for key in ["a", "b", "a"] { changes.forget(key) }
        #expect(CacheChanges(changes.encoded) == changes && changes.moment == 3)
        #expect(changes.hasForgotten("a", since: 2) && !changes.hasForgotten("b", since: 2))
        #expect(changes.hasForgotten("b", since: 1) && !changes.hasForgotten("c", since: 0))
        changes.forget(nil)
        #expect(changes.hasForgotten("c", since: 3))
        for bytes in [Array("nonsense".utf8), [], [0xFF], Array("1\na\nb".utf8)] {
            #expect(CacheChanges(bytes).moment == 0 && CacheChanges(bytes).hasForgotten("c", since: 3))
        }
        for _ in 0..<1_000 { changes.forget("d") }
        #expect(changes.hasForgotten("c", since: 4) && !changes.hasForgotten("c", since: changes.moment - 64))
        #expect(changes.encoded.count < 1_000)
    }

    @Test func `all instances of a folder share one secret key, and each folder has its own`() throws {
        let (folder, other) = (CacheFolderFixture(), CacheFolderFixture())
        #expect(folder.disk().key == folder.disk().key && folder.disk().key != other.disk().key)
        let file = try #require(folder.files("secret").first)
        let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o600)
    }

    @Test func `a response that is held for the cache is released after the cache has written it`() async throws {
        let folder = folder
        let (isHeld, holds) = try await TestThread.run {
            let cache = HTTPCache(folder: folder.url)
            let response = try CacheSamples.response(200, ["Cache-Control": "max-age=60"])
            let tee = CacheTee(response, at: "http://h.com/", in: cache)
            let isHeld = Locked(false)
            let holds = Locked(0)
            let bytes = [UInt8](repeating: 65, count: 3 << 20)
            bytes.withUnsafeBytes { bytes in
                tee.append(
                    bytes,
                    hold: {
                        isHeld.withLock { $0 = true }
                        holds.withLock { $0 += 1 }
                    }, proceed: { isHeld.withLock { $0 = false } })
            }
            let written = DispatchSemaphore(value: 0)
            cache.perform { _, _ in written.signal() }
            written.wait()
            tee.end(isComplete: false)
            return (isHeld.withLock { $0 }, holds.withLock { $0 })
        }
        #expect(!isHeld && holds == 1)
    }
}
