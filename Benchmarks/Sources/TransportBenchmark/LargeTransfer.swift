// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import NetworkBenchmarkSupport
import OperationCore
import OperationNetworking

/// A client that transfers a large file, and prints the seconds and the maximum growth of the process in bytes.
struct LargeTransfer {
    let url: URL
    let file: URL

    init?(_ arguments: [String]) {
        guard arguments.count == 2, let url = URL(string: arguments[0]) else { return nil }
        self.url = url
        file = URL(fileURLWithPath: arguments[1])
    }

    /// Downloads to the file without synchronizing it to the disk, as the curl command does.
    func download() {
        // A first request excludes the cost of first uses.
        let small = url.deletingLastPathComponent().appendingPathComponent("small")
        _ = download(small, to: file.appendingPathExtension("first"))
        report { download(url, to: file) }
    }

    private func download(_ url: URL, to file: URL) -> Bool {
        let operation = NetworkDownloadOperation<URL>(url: url) { file, _ in file }
        operation.destination = .file(file)
        operation.downloadOptions.isDurable = false
        operation.downloadOptions.checkpointInterval = .seconds(3_600)
        operation.downloadOptions.existingItem = .replace
        return (try? operation.startAndWait()) != nil
    }

    /// Uploads the file.
    func upload() {
        _ = upload(.data(Data(count: 100)), to: url.appendingPathExtension("first"))
        report {
            guard let region = try? FileRegion(file) else { return false }
            return upload(.file(region), to: url)
        }
    }

    private func upload(_ body: RequestBody, to url: URL) -> Bool {
        let operation = NetworkUploadOperation(url: url, method: "PUT", body: body) { _, response in response.statusCode
        }
        return (try? operation.startAndWait()) != nil
    }

    private func report(_ body: () -> Bool) {
        let before = ProcessMemory.bytes("VmRSS")
        let start = DispatchTime.now().uptimeNanoseconds
        guard body() else { return print("failed") }
        let seconds = Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
        print("\(seconds) \(ProcessMemory.bytes("VmHWM") - before)")
    }
}
