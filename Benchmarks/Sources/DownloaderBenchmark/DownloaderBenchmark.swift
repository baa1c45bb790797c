// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import NetworkBenchmarkSupport

/// A benchmark that compares opget with curl, wget and aria2c, which download the same files from a local nginx.
///
/// Each program runs in its own process. The benchmark calls `Scripts/prepare-downloader-benchmark`, which installs and
/// builds the required programs.
@main
enum DownloaderBenchmark {
    static func main() {
        // A program that ends before it has read its list has failed, but must not end the benchmark.
        signal(SIGPIPE, SIG_IGN)
        let parts = ["large", "pieces", "small", "middle"].map { name in
            BenchmarkCommand.Part(name) { workload(name, $0) }
        }
        BenchmarkCommand("downloader", parts: parts).main()
    }

    private static func workload(_ part: String, _ scale: Scale) -> [Figure] {
        let isLarge = part == "large" || part == "pieces"
        guard Preparation.run("Scripts/prepare-downloader-benchmark"),
            let server = LocalNginx(largeSize: isLarge ? (scale.isSmoke ? 8 << 20 : 1 << 30) : 0)
        else {
            print("There is no nginx, or opget cannot be built.")
            return []
        }
        defer { server.stop() }
        do {
            return try makeCase(part, server, scale)
                .figures(rounds: scale.isSmoke ? 1 : 10, isJudged: !scale.isSmoke)
        } catch {
            print("The files could not be made: \(error)")
            return []
        }
    }

    private static func makeCase(_ part: String, _ server: LocalNginx, _ scale: Scale) throws -> DownloadCase {
        let (small, middle) = scale.isSmoke ? (50, 1 << 20) : (500, 64 << 20)
        let large = scale.isSmoke ? "one file of 8 MiB" : "one file of 1 GiB"
        func make(
            _ name: String, _ files: [String], jobs: Int, segments: Int = 1, over reference: Downloader? = nil,
            bound: Double = 1.2
        ) -> DownloadCase {
            let out = server.folder.appendingPathComponent("out")
            let originals = files.map { server.folder.appendingPathComponent("root/\($0)") }
            return DownloadCase(
                name: name, urls: files.map(server.url), originals: originals, jobs: jobs, segments: segments,
                folder: out, isLarge: part != "small", reference: reference, bound: bound)
        }
        /// Writes files with identical content and returns their names.
        func write(_ count: Int, of size: Int) throws -> [String] {
            let root = server.folder.appendingPathComponent("root")
            let bytes = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 17) })
            let names = (0..<count).map { "\(part)-\($0)" }
            for name in names { try bytes.write(to: root.appendingPathComponent(name)) }
            return names
        }
        switch part {
        case "large": return make(large, ["large"], jobs: 1, over: .curl, bound: 1)
        case "pieces": return make("\(large), in 4 pieces", ["large"], jobs: 1, segments: 4)
        case "small":
            let names = try write(small, of: 10_000)
            return make("\(small) files of 10 kB, 6 at a time", names, jobs: 6, over: .curl, bound: 1.5)
        default: return make("8 files of \(middle >> 20) MiB, 4 at a time", try write(8, of: middle), jobs: 4)
        }
    }
}
