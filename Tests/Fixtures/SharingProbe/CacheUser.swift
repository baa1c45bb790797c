// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking

/// Uses a cache randomly and checks every body that the cache serves.
struct CacheUser {
    private let disk: DiskCache
    private var random: Numbers
    private var (kept, hits, misses) = (0, 0, 0)

    init(_ folder: CacheFolder, limit: Int64, seed: UInt64) {
        var limits = CacheLimits()
        limits.totalBytes = limit
        limits.bodyBytes = limit / 8
        disk = DiskCache(folder: folder, limits: limits)
        random = Numbers(state: seed)
    }

    /// - Parameter isTelling: Whether to print a dot after each round.
    mutating func run(_ rounds: Int, isTelling: Bool) throws -> String {
        for _ in 0..<rounds {
            let resource = "https://h.com/\(random.next(below: 12))"
            switch random.next(below: 16) {
            case 0: disk.forget(resource)
            case 1: try freshen(resource)
            case 2..<7: try keep(at: resource)
            default: try read(resource)
            }
            if isTelling { FileHandle.standardOutput.write(Data(".".utf8)) }
        }
        return "OK \(kept) kept, \(hits) hits, \(misses) misses"
    }

    private mutating func keep(at resource: String) throws {
        let number = random.next(below: 1 << 40)
        let variant = ["X-Variant": "\(random.next(below: 3))"] as HeaderFields
        guard let writer = disk.openWriter() else { return }
        let body = Self.body(number)
        for start in stride(from: 0, to: body.count, by: 4_000) {
            guard disk.append(body[start..<min(start + 4_000, body.count)], to: writer, now: Date()) else { return }
        }
        let head = try Self.head(number)
        let response = CachedResponse(head, to: variant, requested: Date(), received: Date())
        disk.commit(writer, response, at: resource, now: Date())
        kept += 1
    }

    private mutating func freshen(_ resource: String) throws {
        guard let variant = disk.metadata(resource, now: Date())?.variants.first else { return }
        disk.freshen(variant.body, with: variant.response, at: resource, now: Date())
    }

    private mutating func read(_ resource: String) throws {
        guard let metadata = disk.metadata(resource, now: Date()), !metadata.variants.isEmpty else {
            misses += 1
            return
        }
        let variant = metadata.variants[random.next(below: metadata.variants.count)]
        guard let reader = disk.openReader(variant.body, of: resource, now: Date()) else {
            misses += 1
            return
        }
        defer { disk.closeReader(reader) }
        var body = Data()
        while case .bytes(let data) = disk.read(reader) { body += data }
        guard let number = variant.response.headers["X-Number"].flatMap({ Int($0) }), body == Self.body(number) else {
            fail("\(resource) has a body of \(body.count) bytes that is none of those that were kept")
        }
        hits += 1
    }

    private static func head(_ number: Int) throws -> ResponseHead {
        guard let url = URL(string: "https://h.com/") else { throw CocoaError(.fileNoSuchFile) }
        return ResponseHead(
            url: url, status: 200,
            headers: ["Cache-Control": "max-age=600", "Vary": "X-Variant", "X-Number": "\(number)"])
    }

    /// The unique body for a number.
    private static func body(_ number: Int) -> Data {
        var numbers = Numbers(state: UInt64(number))
        return Data((0..<numbers.next(below: 20_000)).map { _ in UInt8(truncatingIfNeeded: numbers.next(below: 256)) })
    }
}

/// A random number generator that is deterministic for each start state.
struct Numbers {
    var state: UInt64

    mutating func next(below limit: Int) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int((state >> 33) % UInt64(limit))
    }
}
