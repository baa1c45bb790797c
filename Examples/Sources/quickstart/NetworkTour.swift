// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation
import OperationCore
import OperationNetworking
import OperationTestKit

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Requests as typed operations: data, download and upload, against a small service on the loopback interface.
struct NetworkTour {
    private let server: LoopbackServer
    private let queue = QueueManager("network", width: 4)

    init() throws {
        server = try LoopbackServer()
        server.route("GET", "/albums") { _ in .json(#"[{"title":"Kind of Blue","year":1959}]"#) }
        server.route("POST", "/albums") { request in
            request.text.contains("filename=\"cover.png\"")
                ? .json(#"{"title":"Blue Train","year":1958}"#, status: 201) : .status(400)
        }
        let cover = LoopbackResource(.pattern(count: 5_000_000), etag: "\"one\"")
        server.route("GET", "/cover.png") { cover.answer(to: $0) }
        server.route("PUT", "/cover.png") { .json("{\"bytes\":\($0.bodyCount)}") }
    }

    func run() async throws {
        try await readData()
        try await download()
        try await upload()
        try await callEndpoints()
        try await fail()
    }

    private func readData() async throws {
        print("Data: a request whose answer becomes a model")
        let albums = NetworkDataOperation(url: server.url("/albums"), urlSession: .shared) { data, response in
            try JSONDecoder().decode([Album].self, from: data)
        }
        try queue.add(albums)
        print("  \(try await albums.value)")
        expect(albums.response?.statusCode == 200)
    }

    private func download() async throws {
        print("Download: a file that appears when it is complete, with progress")
        let place = FileManager.default.temporaryDirectory.appendingPathComponent("quickstart-\(UUID()).png")
        defer { try? FileManager.default.removeItem(at: place) }
        let download = NetworkDownloadOperation<URL>(url: server.url("/cover.png"), urlSession: .shared) { file, _ in
            file
        }
        download.destination = .file(place)
        download.callbackQueue = DispatchQueue(label: "progress")
        download.progressPacing = ProgressPacing(smallestStep: 1_000_000)
        download.downloadProgressHandler = { print("  \($0)") }
        try queue.add(download)
        let file = try await download.value
        download.callbackQueue.sync {}
        let size = try FileManager.default.attributesOfItem(atPath: file.path)[.size] as? Int
        print("  \(file.lastPathComponent.prefix(10))…: \(size ?? 0) bytes")
        expect(size == 5_000_000)
    }

    private func upload() async throws {
        print("Upload: after another operation, whose result is what is sent")
        struct Receipt: Decodable { let bytes: Int }
        let paint = ClosureOperation { Data(repeating: 7, count: 300_000) }
        let url = server.url("/cover.png")
        let send = TaskOperation { [paint] in
            let body = RequestBody.data(try await paint.value)
            return try await NetworkUploadOperation(url: url, method: "PUT", body: body) { data, _ in
                try JSONDecoder().decode(Receipt.self, from: data).bytes
            }.run()
        }
        send.addDependency(paint)
        try queue.add([send, paint])
        print("  the server got \(try await send.value) bytes")
        expect(send.outcome?.result == 300_000)
    }

    private func callEndpoints() async throws {
        print("Endpoints: requests as values, over what they have in common")
        let service = NetworkBase(server.url("/"))
        let list = service.operation(for: Albums.list(since: 1950))
        let album = Album(title: "Blue Train", year: 1958)
        let add = service.operation(for: try Albums.add(album, cover: Data(count: 10_000)))
        add.addDependency(list)
        try queue.add([list, add])
        print("  added \(try await add.value.title) after \(try await list.value.map(\.title))")
        expect(add.outcome?.result?.year == 1958)
    }

    private func fail() async throws {
        print("Errors say what failed, for which request, and what to do")
        let missing = NetworkDataOperation(url: server.url("/missing")) { data, _ in data.count }
        try queue.add(missing)
        let outcome = await missing.finalOutcome
        print("  \(outcome.error?.description ?? "no error")")
        expect(outcome.error?.status == 404)
        await queue.drained()
        expect(queue.counts.failed == 1)
    }
}
