// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit

/// A disturbance of a request by the server or the caller, and the expected outcome.
struct Mischief: Sendable {
    typealias Reaction = @Sendable (RecordingReceiver.Event, any NetworkTask) -> Void

    let name: String
    /// How often this kind occurs, relative to the others.
    let weight: Int
    var method = "GET"
    var body = RequestBody.none
    var timeouts = TransferTimeouts.none
    let answer: @Sendable (LoopbackRequest) -> LoopbackAnswer
    var react: Reaction = { _, _ in }
    let isRight: @Sendable (RecordingReceiver.Record) -> Bool

    /// The path of this kind on the server.
    var path: String { "/\(name)" }

    /// Returns the kind for a number.
    ///
    /// The same number always returns the same kind.
    static func of(_ number: UInt64) -> Mischief {
        var generator = SeededGenerator(seed: number)
        var place = Int.random(in: 0..<totalWeight, using: &generator)
        for kind in all {
            place -= kind.weight
            if place < 0 { return kind }
        }
        return all[0]
    }

    private static let totalWeight = all.reduce(0) { $0 + $1.weight }

    /// Serves all kinds.
    static func serve(on server: LoopbackServer) {
        for kind in all { server.routeEarly(kind.path, kind.answer) }
        server.route("/plain-after-redirect") { _ in .text("hello") }
    }
}

extension Mischief {
    private static func failed(_ record: RecordingReceiver.Record) -> Bool { record.error != nil }
    private static func greeted(_ record: RecordingReceiver.Record) -> Bool {
        record.error == nil && record.text == "hello"
    }
    private static func cancelled(_ record: RecordingReceiver.Record) -> Bool { record.error?.code == .cancelled }
    private static var brief: TransferTimeouts {
        var timeouts = TransferTimeouts.none
        timeouts.firstByte = .milliseconds(15)
        timeouts.idle = .milliseconds(15)
        return timeouts
    }
    private static let upload = TestPattern.bytes(count: 90_000)

    static let all: [Mischief] = rightOnes + wrongOnes + brakes + cancels

    private static let rightOnes = [
        Mischief(name: "plain", weight: 600, answer: { _ in .text("hello") }, isRight: greeted),
        Mischief(
            name: "chunked", weight: 40, answer: { _ in .chunks(["hel", "lo"], trailers: ["X-A": "b"]) },
            isRight: greeted),
        Mischief(
            name: "compressed", weight: 20,
            answer: { _ in
                .bytes(
                    Gzip.stored(Array("hello".utf8)),
                    fields: [LoopbackField("Content-Encoding", "gzip")])
            }, isRight: greeted),
        Mischief(
            name: "large", weight: 5, answer: { _ in .repeating(TestPattern.block, count: 300_000) },
            isRight: { $0.isSuccess && $0.bodyCount == 300_000 && $0.isPattern }),
        Mischief(
            name: "upload", weight: 20, method: "PUT", body: .data(Data(upload)),
            answer: { _ in LoopbackAnswer(.awaitBody).followed(by: .head(204)) },
            isRight: { $0.isSuccess && $0.sent == 90_000 }),
        Mischief(
            name: "pieces", weight: 10, method: "PUT",
            body: .stream(canBeSentAgain: true) { PieceProducer(upload, size: 20_000, isLate: true) },
            answer: { _ in LoopbackAnswer(.awaitBody).followed(by: .head(204)) },
            isRight: { $0.isSuccess && $0.sent == 90_000 }),
        Mischief(
            name: "redirect", weight: 20, answer: { _ in .redirect(to: "/plain-after-redirect") },
            // A transport session follows no redirect, and an exchange session does.
            isRight: { $0.status == 302 && $0.isSuccess || greeted($0) }),
    ]

    private static let wrongOnes = [
        Mischief(name: "truncated", weight: 30, answer: { _ in .text("hello").cut(at: 70) }, isRight: failed),
        Mischief(name: "broken", weight: 20, answer: { _ in .text("hello").cut(at: 70, by: .reset) }, isRight: failed),
        Mischief(name: "reset", weight: 20, answer: { _ in .reset }, isRight: failed),
        Mischief(
            name: "cut-upload", weight: 5, method: "POST", body: .data(Data(upload)), answer: { _ in .reset },
            isRight: failed),
        Mischief(
            name: "silent", weight: 3, timeouts: brief,
            answer: { _ in .silence }, isRight: { $0.error?.code == .timedOut }),
        Mischief(
            name: "stalled", weight: 3, timeouts: brief,
            answer: { _ in LoopbackAnswer(.head(200, ["Content-Length": "9"]), .send("hello"), .stallForever) },
            isRight: { $0.error?.code == .timedOut }),
        Mischief(
            name: "garbage", weight: 15, answer: { _ in .raw("\u{1}\u{2}nonsense\r\n\r\n\r\n") }, isRight: failed),
        Mischief(
            name: "lengths", weight: 15,
            answer: { _ in .raw("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!") },
            isRight: failed),
        Mischief(
            name: "chunks", weight: 15,
            answer: { _ in .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nxyz\r\n") },
            isRight: failed),
        Mischief(
            name: "damaged", weight: 10,
            answer: { _ in .raw("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello") },
            isRight: failed),
    ]

    private static let brakes = [
        Mischief(
            name: "suspended", weight: 30, answer: { _ in .text("hello") },
            react: { event, task in
                guard case .head = event else { return }
                task.suspend()
                DispatchQueue.global().async { task.resume() }
            }, isRight: greeted),
        Mischief(
            name: "held", weight: 20, answer: { _ in .repeating(TestPattern.block, count: 100_000) },
            react: { event, task in
                switch event {
                case .head, .bytes:
                    task.hold()
                    DispatchQueue.global().async { task.proceed() }
                default: break
                }
            }, isRight: { $0.isSuccess && $0.bodyCount == 100_000 && $0.isPattern }),
        Mischief(
            name: "both", weight: 10, answer: { _ in .text("hello") },
            react: { event, task in
                guard case .head = event else { return }
                task.hold()
                task.suspend()
                task.proceed()
                DispatchQueue.global().async { task.resume() }
            }, isRight: greeted),
    ]

    private static let cancels = [
        Mischief(
            name: "unwanted-head", weight: 20, answer: { _ in .repeating(TestPattern.block, count: 100_000) },
            react: { event, task in if case .head = event { task.cancel() } }, isRight: cancelled),
        Mischief(
            name: "unwanted-bytes", weight: 10, answer: { _ in .repeating(TestPattern.block, count: 1_000_000) },
            react: { event, task in if case .bytes = event { task.cancel() } }, isRight: cancelled),
        Mischief(
            name: "unwanted-later", weight: 20, answer: { _ in .text("hello") },
            react: { event, task in
                if case .head = event { DispatchQueue.global().async { task.cancel() } }
            }, isRight: { cancelled($0) || greeted($0) }),
        Mischief(
            name: "unwanted-upload", weight: 5, method: "PUT", body: .data(Data(upload)),
            answer: { _ in LoopbackAnswer(.awaitBody).followed(by: .head(204)) },
            react: { event, task in if case .sent = event { task.cancel() } }, isRight: cancelled),
    ]
}
