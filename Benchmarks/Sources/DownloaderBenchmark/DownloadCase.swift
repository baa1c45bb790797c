// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import NetworkBenchmarkSupport

/// A set of files that all programs download, and the measurements of each program.
struct DownloadCase {
    let name: String
    let urls: [String]
    /// The original files, in the order of the URLs, with which the downloaded bytes must agree.
    let originals: [URL]
    let jobs: Int
    let segments: Int
    let folder: URL
    /// A Boolean value that indicates whether the disk has room for the files of only one run.
    let isLarge: Bool
    /// The program that opget is compared with, or nil for the fastest one.
    let reference: Downloader?
    /// The maximum ratio of opget's time to the time of the peer.
    let bound: Double

    /// Returns the wall time compared with the peer, and the processor time compared with the same peer.
    func figures(rounds: Int, isJudged: Bool) -> [Figure] {
        var times: [Downloader: [Usage]] = [:]
        let programs = Downloader.allCases.filter { $0.isThere && $0.can(self) }
        for missing in Downloader.allCases where !missing.isThere { print("\(missing.rawValue) is missing") }
        for round in 0..<rounds {
            // The order changes in each round, because the state of the caches depends on the order.
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
        let candidates = peers.filter { reference == nil || $0.key == reference }
        guard let best = candidates.min(by: { median($0.value.map(\.wall)) < median($1.value.map(\.wall)) }) else {
            return []
        }
        func pair(_ value: (Usage) -> Double) -> Pair {
            Pair(ours: ours.map(value), peer: best.value.map(value))
        }
        return [
            .ratio(
                "\(name); \(best.key.rawValue)", unit: "s", pair(\.wall), target: isJudged ? .atMost(bound) : .none),
            .ratio("the same, processor time", unit: "s", pair(\.processor), target: .none),
        ]
    }

    /// Returns whether the folder contains exactly the downloaded files with the correct bytes.
    private func isWhole(_ folder: URL) -> Bool {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        guard Set(names) == Set(originals.map(\.lastPathComponent)) else { return false }
        return originals.allSatisfy { original in
            let copy = folder.appendingPathComponent(original.lastPathComponent)
            guard let left = try? Data(contentsOf: original, options: .alwaysMapped),
                let right = try? Data(contentsOf: copy, options: .alwaysMapped)
            else { return false }
            return left == right
        }
    }

    private func rounded(_ value: Double) -> Double { (value * 1_000).rounded() / 1_000 }

    /// The time that a process used.
    struct Usage {
        let wall: Double
        let processor: Double
    }

    private func run(_ program: Downloader) -> Usage? {
        let files = FileManager.default
        // Small files are written to a new folder, because some file systems are slow to create files where other files
        // were removed recently. Large files would fill the disk.
        let folder = self.folder.appendingPathComponent(isLarge ? "again" : UUID().uuidString)
        if isLarge { try? files.removeItem(at: folder) }
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
        // `waitUntilExit()` checks the state of the process too rarely for a measurement.
        let ended = DispatchSemaphore(value: 0)
        process.terminationHandler = { _ in ended.signal() }
        let before = ProcessTime.microsecondsOfChildren
        let start = DispatchTime.now().uptimeNanoseconds
        guard (try? process.run()) != nil else { return nil }
        try? input?.fileHandleForWriting.write(contentsOf: Data(program.list(self).utf8))
        try? input?.fileHandleForWriting.close()
        ended.wait()
        let wall = Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
        process.waitUntilExit()
        guard process.terminationStatus == 0, isWhole(folder) else { return nil }
        return Usage(wall: wall, processor: (ProcessTime.microsecondsOfChildren - before) / 1e6)
    }
}
