// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct ReadAheadTests {
    private let wakes = Tally()
    private var waker: BodyWaker { BodyWaker { [wakes] in wakes.add() } }

    private func take(_ count: Int, _ ahead: inout ReadAhead) throws -> (portion: BodyPortion, reads: Bool, [UInt8]) {
        var room = [UInt8](repeating: 0xFF, count: count)
        let (portion, reads) = try room.withUnsafeMutableBytes { try ahead.take(into: $0, waker: waker) }
        return (portion, reads, room)
    }

    @Test func `two portions are read ahead, and a waiting reader is woken`() throws {
        var ahead = ReadAhead(length: 10, portion: 4)
        var taken = try take(3, &ahead)
        #expect(taken.portion == .notYet && taken.reads)
        taken = try take(3, &ahead)
        #expect(taken.portion == .notYet && !taken.reads)
        var next = ahead.next()
        #expect(next?.offset == 0 && next?.count == 4)
        ahead.filled([0, 1, 2, 3])?.wake()
        #expect(wakes.count == 1)
        next = ahead.next()
        #expect(next?.offset == 4 && next?.count == 4)
        #expect(ahead.filled([4, 5, 6, 7]) == nil)
        #expect(ahead.next() == nil)
        taken = try take(3, &ahead)
        #expect(taken.portion == .bytes(3) && taken.2 == [0, 1, 2] && !taken.reads)
        taken = try take(3, &ahead)
        #expect(taken.portion == .bytes(1) && taken.2[0] == 3 && taken.reads)
        next = ahead.next()
        #expect(next?.offset == 8 && next?.count == 2)
        #expect(ahead.filled([8, 9]) == nil)
        #expect(ahead.next() == nil)
        taken = try take(9, &ahead)
        #expect(taken.portion == .bytes(4) && !taken.reads)
        taken = try take(9, &ahead)
        #expect(taken.portion == .bytes(2) && Array(taken.2[..<2]) == [8, 9])
        #expect(try take(1, &ahead).portion == .end)
    }

    @Test func `bytes that were read before a failure are delivered first`() throws {
        var ahead = ReadAhead(length: 8, portion: 4)
        _ = try take(8, &ahead)
        _ = ahead.next()
        _ = ahead.filled([1, 2, 3, 4])
        _ = ahead.next()
        #expect(ahead.failed(NetworkError(code: .bodyChanged, phase: .sending, message: "changed")) == nil)
        #expect(ahead.next() == nil)
        #expect(try take(8, &ahead).portion == .bytes(4))
        #expect(throws: NetworkError.self) { try take(8, &ahead) }
        #expect(ahead.next() == nil)
    }

    @Test func `one empty portion is read from an empty file`() throws {
        var ahead = ReadAhead(length: 0, portion: 4)
        var taken = try take(3, &ahead)
        #expect(taken.portion == .notYet && taken.reads)
        let next = ahead.next()
        #expect(next?.offset == 0 && next?.count == 0)
        taken = try take(3, &ahead)
        #expect(taken.portion == .notYet && !taken.reads)
        ahead.filled([])?.wake()
        #expect(wakes.count == 1)
        taken = try take(3, &ahead)
        #expect(taken.portion == .end && !taken.reads)
        #expect(ahead.next() == nil)
    }

    @Test func `when another thread reads a file, every byte arrives exactly once`() async throws {
        let bytes = TestPattern.bytes(count: 3_000_000)
        let region = try FileRegion(try TemporaryFile(Data(bytes)).url, offset: 17, length: 2_900_000)
        let received = try await TestThread.run {
            let news = DispatchSemaphore(value: 0)
            let reader = try BodyReader(.file(region), waker: BodyWaker { news.signal() })
            var received: [UInt8] = []
            var room = [UInt8](repeating: 0, count: 50_000)
            var size = 1
            while true {
                size = size % room.count + 997
                let portion = try room.withUnsafeMutableBytes {
                    try reader.read(into: .init(rebasing: $0[..<min(size, $0.count)]))
                }
                switch portion {
                case .bytes(let count): received += room.prefix(count)
                case .notYet: news.wait()
                case .end: return received
                }
            }
        }
        let isSame = received == Array(bytes[17..<2_900_017])
        #expect(isSame)
    }
}
