// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

/// Reads a complete body immediately, in the way of a session.
enum BodyBytes {
    /// Returns all bytes of a body, read in portions of the given size.
    static func all(of body: RequestBody, portion: Int = 1 << 16) throws -> [UInt8] {
        let waker = DispatchSemaphore(value: 0)
        let reader = try BodyReader(body, waker: BodyWaker { waker.signal() })
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: portion)
        while true {
            switch try buffer.withUnsafeMutableBytes({ buffer in try reader.read(into: buffer) }) {
            case .bytes(let count): bytes += buffer[..<count]
            case .notYet: waker.wait()
            case .end: return bytes
            }
        }
    }

    static func text(of body: RequestBody, portion: Int = 1 << 16) throws -> String {
        String(decoding: try all(of: body, portion: portion), as: UTF8.self)
    }
}
