// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// A fault of a server in a download or an upload, which is a row of the fault catalogue.
struct OperationFault: Sendable, CustomTestStringConvertible {
    /// The expected end of the operation.
    enum End: Sendable {
        /// A failure with one of these codes.
        case failure(Set<NetworkError.Code>)
        /// A success with this body.
        case body(String)
    }

    /// The row and a description of the fault.
    let name: String
    let end: End
    /// Whether a download can resume from its partial file if the file has a strong validator.
    let leavesPart: Bool
    let options: TransferOptions
    let answer: @Sendable (LoopbackRequest) -> LoopbackAnswer

    init(
        _ name: String, _ end: End, leavesPart: Bool = false,
        _ change: (inout TransferOptions) -> Void = { _ in },
        answer: @escaping @Sendable (LoopbackRequest) -> LoopbackAnswer
    ) {
        (self.name, self.end, self.leavesPart, self.answer) = (name, end, leavesPart, answer)
        var options = TransferOptions()
        options.timeouts = TransferTimeouts(connect: .seconds(50), firstByte: .seconds(50), idle: .seconds(50))
        change(&options)
        self.options = options
    }

    var testDescription: String { name }

    private static let tag = "\"one\""

    private static func head(_ fields: KeyValuePairs<String, String>) -> LoopbackStep { .head(200, fields) }

    static let all: [OperationFault] = breaking + waiting + speaking

    private static let breaking = [
        OperationFault("6, 7: the connection is reset before an answer", .failure([.connectionLost])) { _ in
            LoopbackAnswer(.reset)
        },
        OperationFault("8: the connection is closed before an answer", .failure([.connectionLost, .invalidResponse])) {
            _ in LoopbackAnswer(.close)
        },
        OperationFault("10: a reset in the middle of the body", .failure([.connectionLost]), leavesPart: true) { _ in
            LoopbackAnswer(
                head(["Content-Length": "300000", "ETag": tag]), .send(TestPattern.bytes(count: 200_000)), .reset)
        },
        OperationFault("11: fewer bytes than the header specifies", .failure([.truncatedBody]), leavesPart: true) { _ in
            LoopbackAnswer(
                head(["Content-Length": "300000", "ETag": tag]), .send(TestPattern.bytes(count: 200_000)), .close)
        },
        OperationFault("12: chunks without an end", .failure([.truncatedBody, .connectionLost]), leavesPart: true) {
            _ in
            LoopbackAnswer(
                head(["Transfer-Encoding": "chunked", "ETag": tag]), .chunk(TestPattern.bytes(count: 200_000)), .close)
        },
        OperationFault("13: a body that ends with its connection", .body("Hello")) { _ in
            .raw("HTTP/1.1 200 OK\r\n\r\nHello")
        },
        OperationFault("20: nothing at all, and the connection ends", .body("")) { _ in
            .raw("HTTP/1.1 200 OK\r\n\r\n")
        },
    ]

    private static let waiting = [
        OperationFault("4: silence", .failure([.timedOut]), { $0.timeouts.firstByte = .milliseconds(50) }) { _ in
            .silence
        },
        OperationFault(
            "14: a halt in the middle of the body", .failure([.timedOut]), leavesPart: true,
            { $0.timeouts.idle = .milliseconds(200) }
        ) { _ in
            LoopbackAnswer(
                head(["Content-Length": "300000", "ETag": tag]), .send(TestPattern.bytes(count: 200_000)),
                .stallForever)
        },
        OperationFault(
            "15: a slow body without an end", .failure([.timedOut]), { $0.timeouts.total = .milliseconds(300) }
        ) { _ in
            LoopbackAnswer(
                head(["Content-Length": "300000"]),
                .drip(TestPattern.bytes(count: 300_000), every: .milliseconds(20)))
        },
        OperationFault(
            "16: slow headers without an end", .failure([.timedOut]), { $0.timeouts.total = .milliseconds(300) }
        ) { _ in
            LoopbackAnswer(
                .drip("HTTP/1.1 200 OK\r\nX-Long: " + String(repeating: "a", count: 5_000), every: .milliseconds(20)))
        },
    ]

    private static let speaking = [
        OperationFault("19: what is no HTTP", .failure([.invalidResponse])) { _ in
            .raw("SSH-2.0-OpenSSH_9.6\r\n\r\n")
        },
        OperationFault("21: two lengths that differ", .failure([.invalidResponse])) { _ in
            .raw("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nHello, ")
        },
        OperationFault("22: a length and chunks, of which the chunks count", .body("Hello")) { _ in
            .raw(
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nHello\r\n0\r\n\r\n")
        },
        OperationFault("23: a length beyond all numbers", .failure([.invalidResponse])) { _ in
            .raw("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nHello")
        },
        OperationFault("24: a chunk beyond all numbers", .failure([.invalidResponse, .connectionLost, .truncatedBody]))
        {
            _ in
            .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFFFFF\r\nHello")
        },
        OperationFault("25: informational heads without end", .failure([.headerTooLarge, .invalidResponse])) { _ in
            LoopbackAnswer(.send(repeating: Array("HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n".utf8), count: nil))
        },
        OperationFault("26: other protocols that the client did not request", .failure([.invalidResponse])) { _ in
            .raw("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nHello")
        },
        OperationFault("28: a status that there is not", .failure([.unacceptableStatus])) { _ in
            .text("odd", status: 999)
        },
        OperationFault("68: the page of another network", .failure([.unacceptableContentType])) { _ in
            .bytes(Array("<html>Sign in</html>".utf8)).with("Content-Type", "text/html")
        },
        OperationFault("92: a bomb", .failure([.expansionTooLarge, .undecodableBody])) { _ in
            .bomb(count: 64 << 20)
        },
        OperationFault("93: a head without end", .failure([.headerTooLarge])) { _ in
            LoopbackAnswer(.send("HTTP/1.1 200 OK\r\n"), .send(repeating: Array("X-Long: a\r\n".utf8), count: nil))
        },
    ]
}
