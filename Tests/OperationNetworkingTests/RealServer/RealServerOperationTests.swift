// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import FoundationNetworking
    import OperationNetworking
    import OperationTestKit
    import Testing

    /// Tests the main tasks of operations with a real server: plain, over TLS, and over HTTP/2.
    @Suite(.enabled(if: ServerPrograms.areThere, "Run Scripts/prepare-servers."), .timeLimit(.minutes(2)))
    struct RealServerOperationTests {
        /// A session over a libcurl session, and the server.
        private struct Setup: Sendable {
            let bench: RealBench
            let session: ExchangeSession
            let base: NetworkBase

            init(_ wire: Wire) async throws {
                bench = RealBench(try await NginxServer.shared.value, .curl, wire)
                session = ExchangeSession.over(bench.session) {
                    $0.challenges = ChallengePolicy { question in
                        question.refused.isEmpty ? .password(user: "Aladdin", password: "open sesame") : nil
                    }
                }
                var base = NetworkBase(try bench.url("/"))
                base.session = session
                base.headers = [:]
                base.callbackQueue = DispatchQueue(label: "RealServerOperationTests")
                self.base = base
            }

            func download(_ target: String) throws -> NetworkDownloadOperation<URL> {
                let operation = NetworkDownloadOperation<URL>(url: try bench.url(target), urlSession: session) {
                    file, _ in file
                }
                operation.callbackQueue = DispatchQueue(label: "RealServerOperationTests.download")
                return operation
            }

            func upload(_ body: RequestBody, as file: String) throws -> NetworkUploadOperation<Int> {
                NetworkUploadOperation(
                    url: try bench.url("/files/\(file)"), method: "PUT", body: body, urlSession: session
                ) { _, response in response.statusCode }
            }

            /// Cancels a download when its first bytes are on disk.
            func breakOff(_ operation: NetworkDownloadOperation<URL>) async {
                let begun = Gate()
                operation.downloadProgressHandler = { if $0.completedBytes >= 16 << 10 { begun.open() } }
                operation.start()
                await begun.passage()
                operation.cancel()
                #expect(await operation.finalOutcome.cancellationCause == .requested)
            }
        }

        private func with(_ wire: Wire, _ body: (Setup) async throws -> Void) async throws {
            let setup = try await Setup(wire)
            defer { setup.bench.closeSession() }
            try await body(setup)
        }

        @Test(arguments: Wire.allCases)
        func `data operations decompress bodies, follow redirects and answer challenges`(
            _ wire: Wire
        ) async throws {
            try await with(wire) { setup async throws in
                let base = setup.base
                #expect(try await base.get("small", as: Data.self).run().count == 100)
                let packed = base.get("gzip", as: String.self)
                #expect(try await packed.run() == String(repeating: "All work and no play. ", count: 5_000))
                #expect(packed.responseHead?.isDecoded == true)
                #expect(packed.metrics?.version == wire.version)
                for target in ["found", "permanent"] {
                    #expect(try await base.get(target, as: Data.self).run().count == 100)
                }
                #expect(try await base.get("secret", as: Data.self).run().count == 100)
            }
        }

        @Test(arguments: Wire.allCases)
        func `a failure contains the status and body of the response`(_ wire: Wire) async throws {
            try await with(wire) { setup async throws in
                let error = await failure(of: setup.base.get("teapot", as: Data.self))
                #expect(error?.code == .unacceptableStatus && error?.status == 418)
                #expect(error?.bodyPrefix == Data("short and stout".utf8))
                #expect(await failure(of: setup.base.get("nowhere", as: Data.self))?.status == 404)
            }
        }

        @Test(arguments: Wire.allCases)
        func `a download is saved completely to its destination`(_ wire: Wire) async throws {
            try await with(wire) { setup async throws in
                let folder = try TemporaryFolder()
                let operation = try setup.download("/large")
                operation.destination = .folder(folder.url.appendingPathComponent("new"))
                let place = try await operation.run()
                #expect(place.lastPathComponent == "large")
                #expect(try Data(contentsOf: place).withUnsafeBytes { TestPattern.matches($0, from: 0) })
                #expect(operation.downloadProgress.completedBytes == Int64(NginxServer.largeCount))
                #expect(folder.content == ["new"])
            }
        }

        @Test(arguments: Wire.allCases) func `a canceled download resumes with Range and If-Range`(
            _ wire: Wire
        ) async throws {
            try await with(wire) { setup async throws in
                let folder = try TemporaryFolder()
                let place = folder.url.appendingPathComponent("file")
                func operation(_ target: String) throws -> NetworkDownloadOperation<URL> {
                    let operation = try setup.download(target)
                    operation.destination = .file(place)
                    operation.downloadOptions.resumeKey = "large"
                    return operation
                }
                await setup.breakOff(try operation("/slow"))
                let second = try operation("/large")
                #expect(try await second.run() == place)
                #expect((second.downloadedFile?.resumedBytes ?? 0) >= 16 << 10)
                let data = try Data(contentsOf: place)
                #expect(data.count == NginxServer.largeCount)
                #expect(data.withUnsafeBytes { TestPattern.matches($0, from: 0) })
                #expect(folder.content == ["file"])
            }
        }

        @Test(arguments: Wire.allCases) func `a resumed download starts from scratch if the file has changed`(
            _ wire: Wire
        ) async throws {
            try await with(wire) { setup async throws in
                let folder = try TemporaryFolder()
                let name = UUID().uuidString
                let file = setup.bench.server.uploaded(name)
                defer { try? FileManager.default.removeItem(at: file) }
                try Data(repeating: 1, count: 1 << 20).write(to: file)
                let first = try setup.download("/slow-files/\(name)")
                first.destination = .file(folder.url.appendingPathComponent("file"))
                first.downloadOptions.resumeKey = name
                await setup.breakOff(first)
                try Data(repeating: 2, count: 1 << 20 + 1).write(to: file)
                let second = try setup.download("/files/\(name)")
                second.destination = .file(folder.url.appendingPathComponent("file"))
                second.downloadOptions.resumeKey = name
                let place = try await second.run()
                #expect(try Data(contentsOf: place) == Data(repeating: 2, count: 1 << 20 + 1))
                #expect(second.downloadedFile?.resumedBytes == 0)
                #expect(folder.content == ["file"])
            }
        }

        @Test(arguments: Wire.allCases) func `a multipart form with a file arrives with every byte`(
            _ wire: Wire
        ) async throws {
            try await with(wire) { setup async throws in
                let name = UUID().uuidString
                let photo = try TemporaryFile(Data(TestPattern.bytes(count: 2 << 20)))
                var form = MultipartForm(boundary: "b")
                form.add("title", "On the beach")
                form.add("photo", file: try FileRegion(photo.url), fileName: "a.png")
                let body = try RequestBody.multipart(form)
                let operation = try setup.upload(body, as: name)
                #expect(try await operation.run() == 201)
                let stored = setup.bench.server.uploaded(name)
                defer { try? FileManager.default.removeItem(at: stored) }
                let expected = try await TestThread.run { Data(try BodyBytes.all(of: body)) }
                #expect(try Data(contentsOf: stored) == expected)
                #expect(operation.uploadProgress.completedBytes == body.length)
            }
        }

        @Test(arguments: Wire.allCases) func `a compressed body arrives unchanged`(_ wire: Wire) async throws {
            try await with(wire) { setup async throws in
                let text = String(repeating: "All work and no play. ", count: 100_000)
                let file = try TemporaryFile(Data(text.utf8))
                for body in [RequestBody.data(Data(text.prefix(10_000).utf8)), .file(try FileRegion(file.url))] {
                    let name = UUID().uuidString
                    #expect(try await setup.upload(try body.gzipped(), as: name).run() == 201)
                    let stored = setup.bench.server.uploaded(name)
                    let data = try Data(contentsOf: stored)
                    try FileManager.default.removeItem(at: stored)
                    let unpacked = try #require(Gunzip.text(data))
                    #expect(text.hasPrefix(unpacked) && unpacked.utf8.count == body.length.map(Int.init))
                }
            }
        }

        @Test(arguments: Wire.allCases) func `repeated suspension delivers every byte exactly once`(
            _ wire: Wire
        ) async throws {
            try await with(wire) { setup async throws in
                let operation = setup.base.get("large", as: Data.self)
                let turns = Locked(0)
                operation.downloadProgressHandler = { [weak operation] _ in
                    guard
                        turns.withLock({ turns -> Bool in
                            turns += 1
                            return turns <= 5
                        })
                    else { return }
                    operation?.suspend()
                    operation?.resume()
                }
                let data = try await operation.run()
                #expect(data.count == NginxServer.largeCount)
                #expect(data.withUnsafeBytes { TestPattern.matches($0, from: 0) })
            }
        }

        @Test(arguments: Wire.allCases)
        func `canceling a download removes its temporary file and does not affect other operations`(
            _ wire: Wire
        ) async throws {
            final class Slow: NetworkDownloadOperation<URL>, @unchecked Sendable {
                let folder: URL
                init(_ url: URL, _ session: ExchangeSession, _ folder: URL) {
                    self.folder = folder
                    super.init(url: url, urlSession: session) { file, _ in file }
                }
                override var temporaryFolder: URL { folder }
            }
            try await with(wire) { setup async throws in
                let folder = try TemporaryFolder()
                let other = setup.base.get("large", as: Data.self)
                other.start()
                let slow = Slow(try setup.bench.url("/slow"), setup.session, folder.url)
                slow.callbackQueue = DispatchQueue(label: "RealServerOperationTests.slow")
                await setup.breakOff(slow)
                #expect(try await other.value.count == NginxServer.largeCount)
                #expect(try await folder.contentAtRest() == [])
            }
        }

        @Test(arguments: Wire.allCases)
        func `many concurrent operations in a queue all complete`(_ wire: Wire) async throws {
            try await with(wire) { setup async throws in
                let queue = QueueManager()
                let operations = (0..<200).map { number in
                    setup.base.get(number % 4 == 0 ? "text" : "small", as: Data.self)
                }
                for operation in operations { try queue.add(operation) }
                for (number, operation) in operations.enumerated() {
                    #expect(try await operation.value.count == (number % 4 == 0 ? 110_000 : 100))
                }
            }
        }

        @Test(arguments: ["strange", "expired", "self", "other"])
        func `nothing is sent to a server with an untrusted certificate`(
            _ name: String
        ) async throws {
            let bench = try await NamedBench("https://\(name).test")
            defer { bench.closeSession() }
            let session = ExchangeSession(over: bench.session)
            let upload = NetworkUploadOperation(
                url: try bench.url("/files/secret"), body: .data(Data("secret".utf8)), urlSession: session
            ) { _, _ in 0 }
            let download = NetworkDownloadOperation<URL>(url: try bench.url("/small"), urlSession: session) { file, _ in
                file
            }
            for error in [await failure(of: upload), await failure(of: download)] {
                #expect(error?.code == .untrustedCertificate && error?.phase == .connecting)
                #expect(error?.isUnsent == true && error?.status == nil)
            }
            #expect(upload.uploadProgress.completedBytes == 0)
        }
    }
#endif
