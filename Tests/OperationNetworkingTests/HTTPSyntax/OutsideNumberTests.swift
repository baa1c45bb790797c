// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import Testing

/// Tests that no number from a server or a file crashes the process, however large it is.
@Suite(.timeLimit(.minutes(1)))
struct OutsideNumberTests {
    private static let texts = [
        "0", "-1", "1", "4611686018427387904", "9223372036854775806", "9223372036854775807", "9223372036854775808",
        "-9223372036854775808", "18446744073709551615", "99999999999999999999999999999999", "+5", "1e300", "",
    ]

    private func head(_ status: Int, _ fields: HeaderFields) throws -> ResponseHead {
        ResponseHead(url: try #require(URL(string: "http://example.com/")), status: status, headers: fields)
    }

    @Test func `saturated sums stay within the range of Int64`() {
        #expect(Int64.max.addingSaturated(1) == .max && Int64.min.addingSaturated(-1) == .min)
        #expect(Int64.max.addingSaturated(.min) == -1 && (5 as Int64).addingSaturated(-7) == -2)
        #expect([Int64.max, .max, 1].saturatedSum == .max && [Int64](1...3).saturatedSum == 6)
    }

    @Test(arguments: texts) func `a Content-Length of any size does not crash a download`(length: String) throws {
        for fields in [["Content-Length": length], ["Content-Length": length, "ETag": "\"a\""]] as [HeaderFields] {
            var machine = DownloadMachine(source: "s")
            _ = machine.ask(havingPart: nil)
            let action = machine.receive(try head(200, fields))
            guard case .begin(let metadata) = action else { continue }
            #expect(metadata.total ?? 0 >= 0)
            for count in [1, Int.max, Int.max] { _ = machine.receive(count: count) }
            _ = machine.end(nil)
            // The same for a partial file that lacks the last byte.
            let total = metadata.total ?? .max
            let last = max(total - 1, 0), range = "bytes \(last)-\(last)/\(total)"
            _ = machine.ask(havingPart: DownloadPart(metadata: metadata, length: last))
            _ = machine.receive(try head(206, ["Content-Range": range, "ETag": "\"a\"", "Content-Length": "1"]))
            for count in [1, Int.max] { _ = machine.receive(count: count) }
            _ = machine.end(nil)
        }
    }

    @Test func `a Content-Range with any numbers is read without a crash`() {
        for first in Self.texts {
            for last in Self.texts {
                for total in Self.texts + ["*"] {
                    guard let range = ContentRange("bytes \(first)-\(last)/\(total)"), let bytes = range.bytes else {
                        continue
                    }
                    #expect(bytes.lowerBound >= 0 && bytes.upperBound < range.total ?? .max)
                }
            }
        }
    }

    @Test(arguments: texts) func `a duration of any size from a server is read without a crash`(number: String) {
        let now = Date(timeIntervalSince1970: 1_000_000_000)
        #expect(CacheControl(["max-age=\(number)"]).seconds("max-age") ?? 0 >= 0)
        if let cookie = SetCookie("a=b; Max-Age=\(number)", now: now), let end = cookie.expires {
            #expect(end <= now.addingTimeInterval(SetCookie.ageLimit))
        }
        var events = ServerSentEventParser()
        _ = events.take("retry: \(number)")
        #expect(events.pause ?? .zero >= .zero)
    }

    @Test(arguments: [Double.infinity, -.infinity, .nan, 1e300, -1e300, 0])
    func `an HTTP date is parsed regardless of the current time`(seconds: Double) {
        let moment = Date(timeIntervalSince1970: seconds)
        #expect(HTTPDate.parse("Sunday, 06-Nov-94 08:49:37 GMT", now: moment) != nil)
    }

    @Test func `cache files of any size are trimmed without a crash`() {
        let now = Date(timeIntervalSince1970: 1_000_000_000)
        let files = [
            CacheFile(name: "a.metadata", size: .max, used: now), CacheFile(name: "a-1.body", size: .max, used: now),
            CacheFile(name: "b.metadata", size: 1, used: now), CacheFile(name: "-1.part", size: .max, used: now),
        ]
        let removed = DiskCache.filesToRemove(files, limit: 100, recency: ["b": 1], now: now)
        #expect(removed.map(\.name).contains("a.metadata"))
        _ = DiskCache.filesToRemove(files, limit: -1, recency: [:], now: now)
    }
}
