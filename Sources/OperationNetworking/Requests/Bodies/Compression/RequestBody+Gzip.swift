// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

extension RequestBody {
    /// Up to this size what is in memory is compressed at once, so that its length is known beforehand.
    private static let largestAtOnce = 1 << 20

    /// Whether bodies can be compressed on this system: on Linux by the zlib that libcurl brings along.
    public static var canCompress: Bool { GzipEncoder.isAvailable }

    /// The same body, compressed by gzip.
    ///
    /// ```swift
    /// let body = try RequestBody.json(["text": String(repeating: "a", count: 10_000)]).gzipped()
    /// ```
    ///
    /// The request gets a `Content-Encoding` field that says so, unless it has one. Ask beforehand whether the server takes
    /// that: many do not. Data of up to 1 MiB is compressed at once; all else while it is sent, in chunks, for its length
    /// is known only in the end. What is compressed already stays as it is. A part of a form cannot be compressed by itself,
    /// for there is no field that would say so: compress the whole form.
    public func gzipped() throws(NetworkError) -> RequestBody {
        guard Self.canCompress else { throw .noCompression }
        // The field would say once what was done twice.
        if contentEncoding != nil { return self }
        switch source {
        case .none: return self
        case .data(let data) where data.count <= Self.largestAtOnce:
            return .data(try Self.compressed(self, data.count)).described(as: contentType, encoding: "gzip")
        default:
            return .stream(canBeSentAgain: canBeSentAgain) { try GzipProducer(self) }
                .described(as: contentType, encoding: "gzip")
        }
    }

    private static func compressed(_ body: RequestBody, _ count: Int) throws(NetworkError) -> Data {
        let producer = try GzipProducer(body)
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        var data = Data(capacity: count / 2)
        // Bytes in memory are always there.
        let waker = BodyWaker {}
        do {
            while case .bytes(let made) = try buffer.withUnsafeMutableBytes({ room in
                try producer.produce(into: room, waker: waker)
            }) {
                data.append(contentsOf: buffer[..<made])
            }
        } catch {
            throw NetworkError(error, phase: .checking)
        }
        return data
    }
}
