// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import NetworkBenchmarkSupport
import OperationCore
import OperationNetworking

/// A client that transfers a large file in an operation, and prints the maximum growth of the process in bytes.
struct LargeOperation {
    let url: URL
    let file: URL

    init?(_ arguments: [String]) {
        guard arguments.count == 2, let url = URL(string: arguments[0]) else { return nil }
        self.url = url
        file = URL(fileURLWithPath: arguments[1])
    }

    /// Downloads to the file.
    func download() {
        // A first request excludes the cost of first uses.
        let small = url.deletingLastPathComponent().appendingPathComponent("small")
        _ = download(small, to: file.appendingPathExtension("first"))
        report { download(url, to: file) }
    }

    private func download(_ url: URL, to file: URL) -> Bool {
        let operation = NetworkDownloadOperation<URL>(url: url, urlSession: .shared) { file, _ in file }
        operation.destination = .file(file)
        return (try? operation.startAndWait()) != nil
    }

    /// Uploads the file in a multipart form of four parts, each of which is a quarter of the file.
    func upload() {
        _ = upload({ $0.add("first", Data(count: 100), fileName: "first") }, to: url.appendingPathExtension("first"))
        report { upload(addQuarters, to: url) }
    }

    private func addQuarters(to form: inout MultipartForm) throws {
        let length = try FileRegion(file).length / 4
        for part in 0..<4 {
            form.add("part \(part)", file: try FileRegion(file, offset: length * Int64(part), length: length))
        }
    }

    private func upload(_ fill: (inout MultipartForm) throws -> Void, to url: URL) -> Bool {
        var form = MultipartForm()
        do {
            try fill(&form)
            let operation = NetworkUploadOperation(
                url: url, method: "PUT", body: try .multipart(form), urlSession: .shared
            ) { _, response in response.statusCode }
            return try operation.startAndWait() == 201
        } catch {
            return false
        }
    }

    private func report(_ body: () -> Bool) {
        let before = ProcessMemory.bytes("VmRSS")
        guard body() else { return print("failed") }
        print(ProcessMemory.bytes("VmHWM") - before)
    }
}
