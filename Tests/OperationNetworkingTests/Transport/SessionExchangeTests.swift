// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationCore
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.timeLimit(.minutes(3)))
    struct SessionExchangeTests {
        private let server: LoopbackServer
        private let session = CurlSession.direct()

        init() throws {
            server = try LoopbackServer()
        }

        @Test func `a large body arrives completely in parts of limited size`() async throws {
            let count = 32 << 20
            server.route("/big") { _ in .repeating(TestPattern.block, count: count) }
            let largest = Locked(0)
            let receiver = RecordingReceiver { event, _ in
                if case .bytes(let count) = event { largest.withLock { $0 = max($0, count) } }
            }
            session.makeTask(with: try NetworkRequest(url: server.url("/big")), receiver: receiver).resume()
            let record = await receiver.end()
            #expect(record.isSuccess && record.bodyCount == count && record.isPattern && record.faults.isEmpty)
            #expect(largest.withLock { $0 } <= 64 << 10)
        }

        @Test func `metrics report the connection and the phases`() async throws {
            server.route("/m") { _ in .text("Hello") }
            let first = try #require(try await session.run(server.url("/m")).metrics.first)
            #expect(!first.isConnectionReused && first.connected != nil && first.version == .http1_1)
            #expect(first.remoteAddress == "127.0.0.1:\(server.port)" && first.bodyBytesReceived == 5)
            #expect(first.headerBytesReceived > 20)
            let moments = [first.slotGranted, first.connected, first.requestBegan, first.firstByte, first.ended]
            #expect(moments.compactMap { $0 } == moments.compactMap { $0 }.sorted() && !moments.contains(nil))
            let second = try #require(try await session.run(server.url("/m")).metrics.first)
            #expect(second.isConnectionReused && second.connected == nil && server.counts.connections == 1)
        }
    }

    enum Compressed {
        /// A greeting that is repeated three times.
        static let hello: [UInt8] = [
            0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0xD7,
            0x51, 0x48, 0xAF, 0xCA, 0x2C, 0xD0, 0x53, 0xF0, 0xC0, 0xC9, 0x01, 0x00, 0xFF, 0xB3, 0x54, 0xA8,
            0x27, 0x00, 0x00, 0x00,
        ]

        /// 4 MiB of zeros.
        static let zeros: [UInt8] =
            [
                0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xED, 0xC1, 0x01, 0x01, 0x00, 0x00, 0x00,
                0x82, 0x20, 0xFF, 0xAF, 0x6E, 0x48, 0x40, 0x01,
            ] + [UInt8](repeating: 0x00, count: 4063)
            + [0x7C, 0x1B, 0x6A, 0x40, 0x47, 0x11, 0x00, 0x00, 0x40, 0x00]
    }
#endif
