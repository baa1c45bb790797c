// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import Testing

struct BodyLengthTests {
    @Test(arguments: [1, 150, 199, 201, 400])
    func `a stream that has another length than was stated is an error, and is not cut`(length: Int) throws {
        let text = Data(repeating: 0x61, count: 200)
        for body in [
            RequestBody.stream(InputStream(data: text), length: Int64(length)),
            .stream(length: Int64(length), canBeSentAgain: true) { PieceProducer(Array(text), size: 200) },
        ] {
            #expect(throws: NetworkError.self) { try BodyBytes.all(of: body) }
        }
    }

    @Test func `a stream of the stated length is given whole`() throws {
        let text = Data(repeating: 0x61, count: 200)
        #expect(try BodyBytes.all(of: .stream(InputStream(data: text), length: 200)) == Array(text))
    }
}
