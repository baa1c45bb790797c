// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import NetworkBenchmarkSupport

/// Some files that all programs download, and what that took each of them.
struct DownloadCase {
    let name: String
    let urls: [String]
    let jobs: Int
    let segments: Int
    let folder: URL
    /// How many times as long as the best peer ours may take.
    let bound: Double

    /// The time on the clock beside the best of the peers, and the processor time beside that one's.
    func figures(rounds: Int, isJudged: Bool) -> [Figure] {
        var times: [Downloader: [Usage]] = [:]
        let programs = Downloader.allCases.filter { $0.isThere && $0.can(self) }
        for missing in Downloader.allCases where !missing.isThere { print("\(missing.rawValue) is missing") }
        for round in 0..<rounds {
            // Whoever comes first finds other caches than who comes second, so they take turns.
            let shift = round % max(programs.count, 1)
            for program in programs[shift...] + programs[..<shift] {
                guard let usage = run(program) else {
                    print("\(program.rawValue) failed at \(name)")
                    continue
                }
                times[program, default: []].append(usage)
            }
        }
        guard let ours = times[.opget], ours.count == rounds else { return [] }
        let peers = times.filter { $0.key != .opget && $0.value.count == rounds }
        for (program, usages) in peers.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            let (wall, processor) = (median(usages.map(\.wall)), median(usages.map(\.processor)))
            print("\(name): \(program.rawValue) \(rounded(wall)) s, processor \(rounded(processor)) s")
        }
        guard let best = peers.min(by: { median($0.value.map(\.wall)) < median($1.value.map(\.wall)) }) else {
            return []
        }
        func pair(_ value: (Usage) -> Double) -> Pair {
            let (left, right) = (ours.map(value), best.value.map(value))
            return Pair(ours: median(left), peer: median(right), ratio: median(zip(left, right).map { $0 / $1 }))
        }
        return [
            .ratio(
                "\(name); \(best.key.rawValue)", unit: "s", pair(\.wall), target: isJudged ? .atMost(bound) : .none),
            .ratio("the same, processor time", unit: "s", pair(\.processor), target: .none),
        ]
    }

    private func rounded(_ value: Double) -> Double { (value * 1_000).rounded() / 1_000 }

    /// What a process took.
    struct Usage {
        let wall: Double
        let processor: Double
    }

    private func run(_ program: Downloader) -> Usage? {
        let files = FileManager.default
        try? files.removeItem(at: folder)
        guard (try? files.createDirectory(at: folder, withIntermediateDirectories: true)) != nil else { return nil }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = program.arguments(self)
        process.currentDirectoryURL = folder
        process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.lowercased().hasSuffix("_proxy") }
        process.standardInput = Pipe()
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        let input = process.standardInput as? Pipe
        let before = ProcessTime.microsecondsOfChildren
        let start = DispatchTime.now().uptimeNanoseconds
        guard (try? process.run()) != nil else { return nil }
        try? input?.fileHandleForWriting.write(contentsOf: Data(program.list(self).utf8))
        try? input?.fileHandleForWriting.close()
        process.waitUntilExit()
        let wall = Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
        let names = (try? files.contentsOfDirectory(atPath: folder.path)) ?? []
        guard process.terminationStatus == 0, names.count == urls.count else { return nil }
        return Usage(wall: wall, processor: (ProcessTime.microsecondsOfChildren - before) / 1e6)
    }
}

/// A program that downloads.
enum Downloader: String, CaseIterable {
    case opget, curl, wget, aria2c

    private static let own = Preparation.root.appendingPathComponent("Examples/.build/release/opget").path

    var isThere: Bool {
        if self == .opget { return FileManager.default.isExecutableFile(atPath: Self.own) }
        let paths = ProcessInfo.processInfo.environment["PATH", default: ""].split(separator: ":")
        return paths.contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(rawValue)") }
    }

    /// wget knows one file at a time, and neither it nor curl a file in pieces.
    func can(_ work: DownloadCase) -> Bool {
        switch self {
        case .opget, .aria2c: true
        case .curl, .wget: work.segments == 1
        }
    }

    /// The list that it reads from its standard input.
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
                + (work.jobs > 1 ? ["--parallel", "--parallel-max", "\(work.jobs)"] : [])
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
