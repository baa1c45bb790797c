// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import BenchmarkSupport
import Foundation
import NetworkBenchmarkSupport

/// Returns the growth of a process while it transfers a large file.
func largeOperations(_ scale: Scale) -> [Figure] {
    let size = scale.isSmoke ? 64 << 20 : 1 << 30
    guard Preparation.run(), let server = LocalNginx(largeSize: size) else {
        print("SKIPPED: there is no nginx, and it cannot be installed (see above).")
        return []
    }
    defer { server.stop() }
    let received = server.folder.appendingPathComponent("received").path
    var downloads: [Double] = [], uploads: [Double] = []
    for _ in 0..<(scale.isSmoke ? 1 : 3) {
        guard let download = growth(.download, server.url("large"), received) else { return [] }
        downloads.append(download)
        try? FileManager.default.removeItem(atPath: received)
        let sent = server.folder.appendingPathComponent("root/large").path
        guard let upload = growth(.upload, server.url("taken/\(UUID())"), sent) else { return [] }
        uploads.append(upload)
    }
    return [
        .plain("memory growth over a download", unit: "MiB", downloads.max() ?? 0, target: .atMost(16)),
        .plain("memory growth over a multipart upload", unit: "MiB", uploads.max() ?? 0, target: .atMost(16)),
    ]
}

private func growth(_ role: NetworkOperationsBenchmark.Role, _ url: String, _ file: String) -> Double? {
    guard let numbers = ChildProcess([role.rawValue, url, file])?.numbers(), numbers.count == 1 else {
        print("the transfer of a large file failed")
        return nil
    }
    return numbers[0] / Double(1 << 20)
}
