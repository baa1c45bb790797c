// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct BodyLengthTests {
    @Test(arguments: [1, 150, 199, 201, 400])
    func `a stream whose length differs from the stated length is an error`(length: Int) throws {
        let text = Data(repeating: 0x61, count: 200)
        for body in [
            RequestBody.stream(InputStream(data: text), length: Int64(length)),
            .stream(length: Int64(length), canBeSentAgain: true) { PieceProducer(Array(text), size: 200) },
        ] {
            #expect(throws: NetworkError.self) { try BodyBytes.all(of: body) }
        }
    }

    @Test(arguments: [0, 1, 50, 150], [false, true])
    func `a stream that exceeds its stated length is an error`(length: Int, isLate: Bool) async throws {
        let body = RequestBody.stream(length: Int64(length), canBeSentAgain: true) {
            PieceProducer(Array(repeating: 0x61, count: 200), size: 50, isLate: isLate)
        }
        // Like libcurl, this asks for no more than the missing bytes.
        _ = try await TestThread.run {
            #expect { try BodyBytes.all(of: body, portion: max(length, 1)) } throws: {
                ($0 as? NetworkError)?.code == .bodyLengthMismatch
            }
        }
    }

    @Test(arguments: [1, 7, 50, 200, 1_000])
    func `a stream that reports its end late is read completely`(portion: Int) async throws {
        let bytes = TestPattern.bytes(count: 200)
        let body = RequestBody.stream(length: 200, canBeSentAgain: true) {
            PieceProducer(bytes, size: 50, isLate: true)
        }
        #expect(try await TestThread.run { try BodyBytes.all(of: body, portion: portion) } == bytes)
    }

    @Test func `a stream that has not reported its end yet keeps its last portion back`() throws {
        let hesitant = ClosureProducer { buffer, _, call in
            if call == 1 { buffer.copyBytes(from: [1, 2, 3] as [UInt8]) }
            return call == 1 ? .bytes(3) : call < 4 ? .notYet : .end
        }
        let reader = try BodyReader(.stream(length: 3, canBeSentAgain: true) { hesitant }, waker: BodyWaker {})
        var room = [UInt8](repeating: 0, count: 3)
        func read(_ count: Int) throws -> BodyPortion {
            try room.withUnsafeMutableBytes { try reader.read(into: .init(rebasing: $0[..<count])) }
        }
        #expect(try read(3) == .notYet && !reader.isComplete)
        #expect(try read(3) == .notYet && !reader.isComplete)
        room = [0, 0, 0]
        #expect(try read(2) == .bytes(2) && room == [1, 2, 0] && !reader.isComplete)
        #expect(try read(2) == .bytes(1) && room[0] == 3 && reader.isComplete)
        #expect(try read(2) == .end)
    }

    @Test func `an empty file that has grown or was deleted is an error`() async throws {
        let file = try TemporaryFile(Data())
        let body = RequestBody.file(try FileRegion(file.url))
        try await TestThread.run {
            #expect(try BodyBytes.all(of: body) == [])
            try Data([1]).write(to: file.url)
            #expect { try BodyBytes.all(of: body) } throws: { ($0 as? NetworkError)?.code == .bodyChanged }
            try FileManager.default.removeItem(at: file.url)
            #expect { try BodyBytes.all(of: body) } throws: { ($0 as? NetworkError)?.code == .bodyUnreadable }
        }
    }

    @Test func `a different file of the same length and date is an error`() async throws {
        let (file, other) = (try TemporaryFile(Data("first".utf8)), try TemporaryFile(Data("other".utf8)))
        let body = RequestBody.file(try FileRegion(file.url))
        var status = stat()
        #expect(stat(file.url.path, &status) == 0)
        #if canImport(Darwin)
            let times = [status.st_atimespec, status.st_mtimespec]
        #else
            let times = [status.st_atim, status.st_mtim]
        #endif
        #expect(utimensat(AT_FDCWD, other.url.path, times, 0) == 0)
        #expect(rename(other.url.path, file.url.path) == 0)
        _ = try await TestThread.run {
            #expect { try BodyBytes.all(of: body) } throws: { ($0 as? NetworkError)?.code == .bodyChanged }
        }
    }

    @Test func `a stream of the stated length is read completely`() throws {
        let text = Data(repeating: 0x61, count: 200)
        #expect(try BodyBytes.all(of: .stream(InputStream(data: text), length: 200)) == Array(text))
    }
}
