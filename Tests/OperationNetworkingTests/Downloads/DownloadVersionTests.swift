// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking
import OperationTestKit
import Testing

/// The validators that a server sends with a file, in the first response and in a later partial response.
enum VersionNames {
    /// The validators of the first response.
    enum First: CaseIterable, Sendable {
        case none, weak, strong, date, both

        /// Whether a partial file can be resumed.
        var isStrong: Bool { self == .strong || self == .date || self == .both }

        /// The headers that identify a version.
        func fields(of version: Int) -> [LoopbackField] {
            var fields = [LoopbackField("Date", "Sun, 06 Nov 1994 09:49:37 GMT")]
            if self == .weak { fields.append(LoopbackField("ETag", "W/\"\(version)\"")) }
            if self == .strong || self == .both { fields.append(LoopbackField("ETag", "\"\(version)\"")) }
            if self == .date || self == .both {
                fields.append(LoopbackField("Last-Modified", "Sun, 06 Nov 1994 08:49:3\(version) GMT"))
            }
            return fields
        }
    }

    /// The validator of a partial response.
    enum Second: CaseIterable, Sendable {
        /// No validator.
        case none
        /// The validator of the version that is sent.
        case same
        /// Another validator.
        case other
    }
}

@Suite(.timeLimit(.minutes(5)))
struct DownloadVersionTests {
    private struct Case {
        let first: VersionNames.First
        let second: VersionNames.Second
        let honorsIfRange: Bool
        let isChanged: Bool
        let number: Int

        static let all: [Case] = {
            var cases: [Case] = []
            for first in VersionNames.First.allCases {
                for second in VersionNames.Second.allCases {
                    for honorsIfRange in [true, false] {
                        for isChanged in [true, false] {
                            cases.append(
                                Case(
                                    first: first, second: second, honorsIfRange: honorsIfRange, isChanged: isChanged,
                                    number: cases.count))
                        }
                    }
                }
            }
            return cases
        }()

        var path: String { "/file\(number)" }

        /// The first response, which is cut off.
        func begin(_ bytes: [UInt8]) -> LoopbackAnswer {
            LoopbackAnswer.bytes(bytes, fields: first.fields(of: 1)).cut(at: 300_000)
        }

        /// All later responses.
        func answer(to request: LoopbackRequest, _ bytes: [UInt8]) -> LoopbackAnswer {
            let version = isChanged ? 2 : 1
            let start = request["Range"].flatMap { Int($0.dropFirst(6).dropLast()) }
            guard let start, !(honorsIfRange && isChanged) else {
                return .bytes(bytes, fields: first.fields(of: version))
            }
            var fields = [LoopbackField("Content-Range", "bytes \(start)-\(bytes.count - 1)/\(bytes.count)")]
            switch second {
            case .none: break
            case .same: fields += first.fields(of: version)
            case .other: fields += first.fields(of: 3)
            }
            return .bytes(Array(bytes[start...]), status: 206, fields: fields)
        }
    }

    @Test func `a partial file is resumed only if the server proves its version`() async throws {
        let bench = try DownloadBench()
        let size = 500_000
        let old = TestPattern.bytes(count: size), new = TestPattern.bytes(from: 5, count: size)
        for scene in Case.all {
            let bytes = scene.isChanged ? new : old
            bench.server.route("GET", scene.path) { _ in scene.begin(old) }
            let destination = DownloadDestination.file(bench.url("file\(scene.number)"))
            #expect(try await bench.download(scene.path, to: destination).error != nil, "\(scene)")
            bench.server.route("GET", scene.path) { scene.answer(to: $0, bytes) }
            let file = try await bench.download(scene.path, to: destination).file
            let isWhole = bench.bytes("file\(scene.number)") == bytes
            #expect(isWhole, "\(scene)")
            let isResumed = scene.first.isStrong && scene.second == .same && !scene.isChanged
            #expect((file?.resumedBytes ?? 0 > 0) == isResumed, "\(scene)")
            let requests = bench.server.requests.filter { $0.path == scene.path }
            #expect((requests.dropFirst().first?["Range"] != nil) == scene.first.isStrong, "\(scene)")
            if scene.honorsIfRange && scene.isChanged { #expect(requests.count == 2, "\(scene)") }
        }
        #expect(Case.all.count == 60 && bench.names().count == 60 && bench.server.violations == [])
    }
}
