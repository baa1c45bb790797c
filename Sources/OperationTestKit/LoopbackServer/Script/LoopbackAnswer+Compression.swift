// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

extension LoopbackAnswer {
    /// Bytes as a gzip body with its length in the head.
    public static func gzip(_ bytes: [UInt8], status: Int = 200) -> Self {
        .bytes(Gzip.stored(bytes), status: status, fields: [LoopbackField("Content-Encoding", "gzip")])
    }

    /// A body that unpacks to `count` zeros and is about a thousand times smaller on the wire.
    ///
    /// Neither end takes memory for it here, so a gigabyte of zeros is a megabyte that is sent.
    public static func bomb(count: Int) -> Self {
        let bomb = Gzip.Zeros(count: count)
        return Self(
            .head(
                200, ["Content-Encoding": "gzip", "Content-Type": "text/plain", "Content-Length": "\(bomb.size)"]),
            .send(bomb.head), .send(repeating: [0], count: bomb.zeroBytes), .send(bomb.tail))
    }
}
