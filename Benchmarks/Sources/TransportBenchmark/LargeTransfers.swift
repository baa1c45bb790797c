// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import NetworkBenchmarkSupport

/// Returns the times for a large download to the disk and a large upload from the disk.
func largeTransfers(_ server: LocalNginx, _ scale: Scale) -> [Figure] {
    let file = server.folder.appendingPathComponent("received").path
    var ours: [Double] = [], theirs: [Double] = [], downloading: [Double] = [], uploading: [Double] = []
    for round in 0..<(scale.isSmoke ? 1 : 10) {
        // The order changes in each round, because the state of the caches depends on the order.
        for isOurs in round.isMultiple(of: 2) ? [true, false] : [false, true] {
            try? FileManager.default.removeItem(atPath: file)
            if isOurs, let numbers = own(.download, server.url("large"), file) {
                ours.append(numbers[0])
                downloading.append(numbers[1])
            } else if !isOurs, let seconds = curl(server.url("large"), file) {
                theirs.append(seconds)
            }
        }
    }
    try? FileManager.default.removeItem(atPath: file)
    if let numbers = own(.upload, server.url("taken/large"), server.folder.appendingPathComponent("root/large").path) {
        uploading.append(numbers[1])
    }
    guard !downloading.isEmpty, ours.count == theirs.count, let upload = uploading.first else {
        print("the large transfers failed")
        return []
    }
    let pair = Pair(ours: ours, peer: theirs)
    let target = scale.isSmoke ? Figure.Target.none : .atLeast(1)
    let mebibyte = Double(1 << 20)
    return [
        .speedup("download to disk, to the curl command", unit: "s", pair, target: target),
        .plain(
            "memory growth over a download", unit: "MiB", (downloading.max() ?? 0) / mebibyte, target: .atMost(16)),
        .plain("memory growth over an upload from a file", unit: "MiB", upload / mebibyte, target: .atMost(16)),
    ]
}

private func own(_ role: TransportBenchmark.Role, _ url: String, _ file: String) -> [Double]? {
    guard let numbers = ChildProcess([role.rawValue, url, file])?.numbers(), numbers.count == 2 else { return nil }
    return numbers
}

private func curl(_ url: String, _ file: String) -> Double? {
    let arguments = ["curl", "--silent", "--output", file, "--write-out", "%{time_total}", url]
    return ChildProcess(arguments, program: "/usr/bin/env")?.numbers().first
}
