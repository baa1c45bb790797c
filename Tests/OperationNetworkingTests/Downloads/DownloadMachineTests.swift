// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct DownloadMachineTests {
    private func head(_ status: Int, _ fields: HeaderFields, isDecoded: Bool = false) throws -> ResponseHead {
        ResponseHead(
            url: try #require(URL(string: "http://example.com/")), status: status, headers: fields, isDecoded: isDecoded
        )
    }

    private var part: DownloadPart {
        var metadata = DownloadMetadata(source: "s")
        metadata.validator = .entityTag("\"a\"")
        metadata.total = 100
        return DownloadPart(metadata: metadata, length: 40)
    }

    private func asking(_ part: DownloadPart?, expected: Int64? = nil, maximum: Int64? = nil) -> (
        DownloadMachine, DownloadMachine.Ask
    ) {
        let options = with(DownloadOptions()) { ($0.expectedLength, $0.maximumLength) = (expected, maximum) }
        var machine = DownloadMachine(source: "s", options: options)
        let ask = machine.ask(havingPart: part)
        return (machine, ask)
    }

    @Test func `the rest is requested only if the partial file can be resumed`() {
        #expect(asking(nil).1 == .whole)
        #expect(asking(part).1 == .rest(from: 40, .entityTag("\"a\"")))
        var other = part
        other.metadata.source = "t"
        #expect(asking(other).1 == .whole)
        other = part
        other.metadata.validator = nil
        #expect(asking(other).1 == .whole)
        other = part
        other.length = 0
        #expect(asking(other).1 == .whole)
        other.length = 101
        #expect(asking(other).1 == .whole)
        // If all bytes are there, the last byte is requested again.
        other.length = 100
        #expect(asking(other).1 == .rest(from: 99, .entityTag("\"a\"")))
        other.metadata.total = nil
        #expect(asking(other).1 == .rest(from: 99, .entityTag("\"a\"")))
        var never = DownloadMachine(source: "s", resumes: false)
        #expect(never.ask(havingPart: part) == .whole)
    }

    @Test func `an accepted response with another status starts again if every status may be the file`() throws {
        for takesEveryStatus in [true, false] {
            var machine = DownloadMachine(source: "s", takesEveryStatus: takesEveryStatus)
            #expect(machine.ask(havingPart: part) == .rest(from: 40, .entityTag("\"a\"")))
            let action = machine.receive(try head(404, ["Content-Length": "4", "ETag": "\"a\""]))
            guard takesEveryStatus else {
                #expect(action == .leave)
                continue
            }
            guard case .begin(let metadata) = action else { return unmet("\(action)") }
            #expect(metadata.total == 4 && metadata.validator == nil)
        }
    }

    @Test(
        arguments: [
            ["Content-Range": "bytes 0-99/100", "ETag": "\"a\""],
            ["Content-Range": "bytes 41-99/100", "ETag": "\"a\""],
            ["Content-Range": "bytes 40-99/*", "ETag": "\"a\""], ["Content-Range": "bytes 40-99/101", "ETag": "\"a\""],
            ["Content-Range": "bytes 40-100/100", "ETag": "\"a\""], ["Content-Range": "junk", "ETag": "\"a\""],
            ["ETag": "\"a\""], ["Content-Range": "bytes */100", "ETag": "\"a\""],
            ["Content-Range": "bytes 40-99/100", "ETag": "\"b\""],
            ["Content-Range": "bytes 40-99/100", "ETag": "W/\"a\""],
            ["Content-Range": "bytes 40-99/100", "content-range": "bytes 40-99/100", "ETag": "\"a\""],
            ["Content-Range": "bytes 40-99/100", "ETag": "\"a\"", "Content-Encoding": "gzip"],
            ["Content-Range": "bytes 40-99/100", "ETag": "\"a\"", "Content-Length": "61"],
            // These responses are valid, but may belong to any version.
            ["Content-Range": "bytes 40-99/100"], ["Content-Range": "bytes 40-99/100", "Content-Length": "60"],
            ["Content-Range": "bytes 40-99/100", "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"],
            ["Content-Range": "bytes 40-99/100", "ETag": "\"a\"", "etag": "\"a\""],
            ["Content-Type": "multipart/byteranges; boundary=x"],
        ] as [HeaderFields])
    func `a 206 response that does not match is never written`(fields: HeaderFields) throws {
        var (machine, _) = asking(part)
        #expect(machine.receive(try head(206, fields)) == .askFromStart)
        #expect(machine.receive(count: 60) == .success(0))
        #expect(machine.end(nil) == .askFromStart)
        // The partial file may be there again, because it could not be removed.
        #expect(machine.ask(havingPart: part) == .whole)
    }

    @Test func `a partial file with a date is resumed only if the date is the same`() throws {
        var dated = part
        dated.metadata.validator = .date("x")
        var (machine, ask) = asking(dated)
        #expect(ask == .rest(from: 40, .date("x")))
        let changed: HeaderFields = ["Content-Range": "bytes 40-99/100", "Last-Modified": "y"]
        #expect(machine.receive(try head(206, changed)) == .askFromStart)
        (machine, _) = asking(dated)
        #expect(machine.receive(try head(206, ["Content-Range": "bytes 40-99/100"])) == .askFromStart)
        (machine, _) = asking(dated)
        let same: HeaderFields = ["Content-Range": "bytes 40-99/100", "Last-Modified": "x"]
        guard case .resume(from: 40, _) = machine.receive(try head(206, same)) else { return #expect(Bool(false)) }
    }

    @Test func `a 416 response ends the download only if all bytes are there`() throws {
        var whole = part
        whole.length = 100
        whole.metadata.total = nil
        var (machine, _) = asking(whole)
        let proven: HeaderFields = ["Content-Range": "bytes */100", "ETag": "\"a\""]
        #expect(machine.receive(try head(416, proven)) == .alreadyComplete)
        #expect(machine.receive(count: 10) == .success(0))
        #expect(machine.end(nil) == .finish(length: 100, isLengthKnown: true))
        // Another version may have the same length as the partial file.
        for fields in [
            ["Content-Range": "bytes */99", "ETag": "\"a\""], [:], ["Content-Range": "bytes */100", "ETag": "\"b\""],
            ["Content-Range": "bytes */100"],
        ] as [HeaderFields] {
            (machine, _) = asking(whole)
            #expect(machine.receive(try head(416, fields)) == .askFromStart)
            #expect(machine.end(nil) == .askFromStart)
        }
        (machine, _) = asking(part)
        #expect(machine.receive(try head(416, ["Content-Range": "bytes */40"])) == .askFromStart)
        (machine, _) = asking(nil)
        #expect(machine.receive(try head(416, [:])) == .leave)
        #expect(machine.end(nil) == .left)
    }

    @Test(arguments: [1, 64 << 10])
    func `the rest may arrive in many pieces, but not in too many small ones`(size: Int) throws {
        var (machine, position, piece) = (DownloadMachine(source: "s"), 1000, 0)
        let total = 200 * (64 << 10)
        var metadata = DownloadMetadata(source: "s")
        (metadata.validator, metadata.total) = (.entityTag("\"a\""), Int64(total))
        while true {
            _ = machine.ask(havingPart: DownloadPart(metadata: metadata, length: Int64(position)))
            let count = min(size, total - position)
            let range = "bytes \(position)-\(position + count - 1)/\(total)"
            _ = machine.receive(
                try head(206, ["Content-Range": range, "Content-Length": "\(count)", "ETag": "\"a\""]))
            #expect(machine.receive(count: count) == .success(count))
            position += count
            piece += 1
            let end = machine.end(nil)
            if end == .askForRest, piece < 1000 { continue }
            if size == 1 {
                guard case .keep(let error) = end else { return unmet("\(end)") }
                #expect(error.code == .invalidResponse && piece == 101)
            } else {
                #expect(end == .finish(length: Int64(total), isLengthKnown: true))
            }
            return
        }
    }

    @Test(arguments: [204, 205, 301, 304, 401, 404, 500, 503])
    func `other statuses leave the partial file unchanged`(status: Int) throws {
        var (machine, _) = asking(part)
        #expect(machine.receive(try head(status, ["Content-Length": "7"])) == .leave)
        #expect(machine.receive(count: 7) == .success(0))
        #expect(machine.end(nil) == .left)
        #expect(machine.ask(havingPart: part) == .rest(from: 40, .entityTag("\"a\"")))
    }

    @Test func `a 206 response without a range request is an error`() throws {
        var (machine, _) = asking(nil)
        guard case .fail(let error) = machine.receive(try head(206, ["Content-Range": "bytes 0-9/10"])) else {
            return #expect(Bool(false))
        }
        #expect(error.code == .invalidResponse)
        #expect(machine.end(nil) == .discard(error))
    }

    @Test func `bytes beyond the end are an error`() throws {
        var (machine, _) = asking(part)
        _ = machine.receive(try head(206, ["Content-Range": "bytes 40-59/100", "ETag": "\"a\""]))
        guard case .failure(let error) = machine.receive(count: 21) else { return #expect(Bool(false)) }
        #expect(error.code == .bodyTooLarge)
        #expect(machine.end(nil) == .discard(error))
    }

    @Test func `an unexpected length ends the download as early as possible`() throws {
        var (machine, _) = asking(nil, expected: 10)
        guard case .fail(let early) = machine.receive(try head(200, ["Content-Length": "11"])) else {
            return #expect(Bool(false))
        }
        #expect(early.code == .unexpectedLength)
        (machine, _) = asking(nil, expected: 10)
        _ = machine.receive(try head(200, [:]))
        #expect(machine.receive(count: 9) == .success(9))
        guard case .discard(let short) = machine.end(nil) else { return #expect(Bool(false)) }
        #expect(short.code == .unexpectedLength)
        (machine, _) = asking(nil, maximum: 10)
        _ = machine.receive(try head(200, [:]))
        guard case .failure(let long) = machine.receive(count: 11) else { return #expect(Bool(false)) }
        #expect(long.code == .bodyTooLarge)
    }

    @Test func `after a failure, the partial file is kept only if it can be resumed`() throws {
        let lost = NetworkError(code: .connectionLost, phase: .receiving, message: "")
        var (machine, _) = asking(nil)
        _ = machine.receive(try head(200, ["Content-Length": "9", "ETag": "\"a\""]))
        #expect(machine.end(lost) == .keep(lost))
        (machine, _) = asking(nil)
        _ = machine.receive(try head(200, ["Content-Length": "9", "ETag": "W/\"a\""]))
        #expect(machine.end(lost) == .discard(lost))
        (machine, _) = asking(nil)
        _ = machine.receive(try head(200, ["Content-Length": "9", "ETag": "\"a\"", "Content-Encoding": "gzip"]))
        #expect(machine.end(lost) == .discard(lost))
        (machine, _) = asking(nil)
        _ = machine.receive(try head(200, ["ETag": "\"a\""], isDecoded: true))
        #expect(machine.end(lost) == .discard(lost))
        (machine, _) = asking(part)
        #expect(machine.end(lost) == .keep(lost))
    }

    /// Simulates a server with two versions that responds at random, correctly or not.
    @Test func `random responses of a server never mix two versions in a file`() throws {
        for seed in 0..<Rounds.count(ci: 3000, soak: 200_000) {
            var generator = SeededGenerator(seed: UInt64(seed))
            var machine = DownloadMachine(source: "s")
            // The version from which each byte of the partial file came.
            var file: [Int] = []
            var metadata: DownloadMetadata?
            let totals = [Int64.random(in: 1...6, using: &generator), Int64.random(in: 1...6, using: &generator)]
            for _ in 0..<12 {
                let version = Int.random(in: 0...1, using: &generator)
                let total = totals[version]
                let known = metadata.map { DownloadPart(metadata: $0, length: Int64(file.count)) }
                var status = 200
                var fields: HeaderFields = ["ETag": "\"\(version)\"", "Content-Length": "\(total)"]
                var first: Int64 = 0
                if case .rest(let offset, let validator) = machine.ask(havingPart: known) {
                    let matches = validator == .entityTag("\"\(version)\"")
                    if generator.chance(1, in: 4) {
                        // A server that ignores If-Range sends the rest of its own version.
                        (status, first) = offset < total ? (206, offset) : (416, 0)
                    } else if matches {
                        (status, first) = offset < total ? (206, offset) : (416, 0)
                    }
                    if status == 206 {
                        fields["Content-Length"] = nil
                        let start = generator.chance(1, in: 5) ? Int64.random(in: 0..<total, using: &generator) : first
                        first = start
                        fields["Content-Range"] = "bytes \(start)-\(total - 1)/\(total)"
                    }
                    if status == 416 { fields = ["Content-Range": "bytes */\(total)", "ETag": "\"\(version)\""] }
                    if status != 200, generator.chance(1, in: 3) { fields["ETag"] = nil }
                }
                switch machine.receive(try head(status, fields)) {
                case .begin(let new): (file, metadata) = ([], new)
                case .resume(let offset, let new): (file, metadata) = (Array(file[..<Int(offset)]), new)
                default: break
                }
                let sends = status == 416 ? 0 : Int64.random(in: 0...(total - first), using: &generator)
                for _ in 0..<sends {
                    guard case .success(1) = machine.receive(count: 1) else { break }
                    file.append(version)
                }
                let isCut = status != 416 && sends < total - first
                let lost = NetworkError(code: .connectionLost, phase: .receiving, message: "")
                switch machine.end(isCut ? lost : nil) {
                case .finish(let length, _):
                    #expect(Set(file).count == 1, "seed \(seed)")
                    #expect(length == Int64(file.count) && length == totals[file[0]], "seed \(seed)")
                    (file, metadata) = ([], nil)
                case .askFromStart, .discard: (file, metadata) = ([], nil)
                case .askForRest, .left, .keep: break
                }
                #expect(Set(file).count <= 1, "seed \(seed)")
            }
        }
    }
}
