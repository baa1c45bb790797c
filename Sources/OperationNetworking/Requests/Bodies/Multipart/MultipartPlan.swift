// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// The pieces of a form in their order: what stands around the parts, and the parts themselves.
struct MultipartPlan: Sendable {
    enum Piece: Sendable {
        case bytes([UInt8])
        case body(RequestBody)
    }

    let pieces: [Piece]

    init(_ form: MultipartForm) {
        var pieces: [Piece] = []
        var isFirst = true
        for part in form.parts {
            pieces.append(.bytes(Array("\(isFirst ? "" : "\r\n")--\(form.boundary)\r\n".utf8) + part.head))
            if !part.body.isNone { pieces.append(.body(part.body)) }
            isFirst = false
        }
        pieces.append(.bytes(Array("\(isFirst ? "" : "\r\n")--\(form.boundary)--\r\n".utf8)))
        self.pieces = pieces
    }

    /// How many bytes there are; nil if one of the parts does not know its length.
    func length() throws(NetworkError) -> Int64? {
        var sum: Int64 = 0
        for piece in pieces {
            let count: Int64
            switch piece {
            case .bytes(let bytes): count = Int64(bytes.count)
            case .body(let body):
                guard let length = body.length else { return nil }
                count = length
            }
            let (next, overflows) = sum.addingReportingOverflow(count)
            guard !overflows else {
                throw NetworkError(
                    code: .bodyLengthMismatch, phase: .checking,
                    message: "The parts are longer together than any body can be. Check their lengths.")
            }
            sum = next
        }
        return sum
    }
}
