// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import NetworkBenchmarkSupport

/// A program that downloads files.
enum Downloader: String, CaseIterable {
    case opget, curl, wget, aria2c

    private static let own = Preparation.root.appendingPathComponent("Examples/.build/release/opget").path

    var isThere: Bool {
        if self == .opget { return FileManager.default.isExecutableFile(atPath: Self.own) }
        let paths = ProcessInfo.processInfo.environment["PATH", default: ""].split(separator: ":")
        return paths.contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(rawValue)") }
    }

    /// Returns whether the program supports a case, because wget downloads only one file at a time, and neither wget
    /// nor curl downloads a file in segments.
    func can(_ work: DownloadCase) -> Bool {
        switch self {
        case .opget, .aria2c: true
        case .curl, .wget: work.segments == 1
        }
    }

    /// Returns the list of URLs that the program reads from standard input.
    func list(_ work: DownloadCase) -> String {
        switch self {
        case .curl: work.urls.map { "url = \"\($0)\"\nremote-name\n" }.joined()
        case .opget, .wget, .aria2c: work.urls.map { $0 + "\n" }.joined()
        }
    }

    func arguments(_ work: DownloadCase) -> [String] {
        switch self {
        case .opget: [Self.own, "-q", "-i", "-", "-j", "\(work.jobs)", "-s", "\(work.segments)"]
        case .curl:
            ["curl", "--silent", "--fail", "--config", "-"]
                + (work.jobs > 1 ? ["--parallel", "--parallel-immediate", "--parallel-max", "\(work.jobs)"] : [])
        case .wget: ["wget", "--quiet", "--input-file=-"]
        case .aria2c:
            [
                "aria2c", "--quiet", "--input-file=-", "--max-concurrent-downloads=\(work.jobs)",
                "--max-connection-per-server=\(max(work.segments, 1))", "--split=\(work.segments)",
                "--min-split-size=1M", "--file-allocation=falloc", "--no-conf",
            ]
        }
    }
}
