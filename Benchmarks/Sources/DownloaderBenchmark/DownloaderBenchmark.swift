// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import NetworkBenchmarkSupport

/// opget beside curl, wget and aria2c: the same files from an nginx on this machine, each program in a process of its own.
///
/// What it needs is installed and built by `Scripts/prepare-downloader-benchmark`, which it calls itself.
@main
enum DownloaderBenchmark {
    static func main() { BenchmarkCommand("downloader", workload: workload).main() }

    private static func workload(_ scale: Scale) -> [Figure] {
        guard Preparation.run("Scripts/prepare-downloader-benchmark"),
            let server = LocalNginx(largeSize: scale.isSmoke ? 8 << 20 : 1 << 30)
        else {
            print("There is no nginx, or opget cannot be built.")
            return []
        }
        defer { server.stop() }
        do {
            return try cases(server, scale).flatMap {
                $0.figures(rounds: scale.isSmoke ? 1 : 5, isJudged: !scale.isSmoke)
            }
        } catch {
            print("The files could not be made: \(error)")
            return []
        }
    }

    private static func cases(_ server: LocalNginx, _ scale: Scale) throws -> [DownloadCase] {
        let root = server.folder.appendingPathComponent("root")
        let (small, middle) = scale.isSmoke ? (50, 1 << 20) : (1_000, 64 << 20)
        let smallBytes = Data(repeating: 0x79, count: 10_000)
        let smallNames = (0..<small).map { "small-\($0)" }
        for name in smallNames { try smallBytes.write(to: root.appendingPathComponent(name)) }
        let block = Data((0..<middle).map { UInt8(truncatingIfNeeded: $0 &* 17) })
        let middleNames = (0..<8).map { "middle-\($0)" }
        for name in middleNames { try block.write(to: root.appendingPathComponent(name)) }
        let out = server.folder.appendingPathComponent("out")
        func make(_ name: String, _ files: [String], jobs: Int, segments: Int = 1, _ bound: Double) -> DownloadCase {
            DownloadCase(
                name: name, urls: files.map(server.url), jobs: jobs, segments: segments, folder: out, bound: bound)
        }
        let large = scale.isSmoke ? "one file of 8 MiB" : "one file of 1 GiB"
        return [
            make(large, ["large"], jobs: 1, 1.2),
            make("\(large), in 4 pieces", ["large"], jobs: 1, segments: 4, 1.2),
            make("\(small) small files, 6 at a time", smallNames, jobs: 6, 1.2),
            make("8 files of \(middle >> 20) MiB, 4 at a time", middleNames, jobs: 4, 1.2),
        ]
    }
}
