// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct StubUploadTests {
    /// A producer that reports wrong byte counts, including negative ones.
    private final class Boaster: BodyProducer {
        private let counts = Locked<[Int]>([-1, 3, .min])

        func produce(into buffer: UnsafeMutableRawBufferPointer, waker: BodyWaker) throws -> BodyPortion {
            counts.withLock { $0.isEmpty ? .end : .bytes($0.removeFirst()) }
        }
    }

    @Test func `a session ignores wrong byte counts of a producer`() async throws {
        let bench = try RecordingBench()
        bench.session.route(nil, "*") { _ in .text("ok") }
        let body = RequestBody.stream(canBeSentAgain: true) { Boaster() }
        #expect(await bench.end(bench.session, body).error == nil)
        #expect(bench.session.requests.map(\.body) == [Data([0, 0, 0])])
        let recorder = RecordingSession(over: bench.session)
        #expect(await bench.end(recorder, body).error == nil)
        #expect(recorder.recording.exchanges.map(\.requestBody) == [RecordedBody(Data([0, 0, 0]))])
    }
}
