// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import OperationNetworking
    import OperationTestKit
    import Testing

    extension ProcessShape {
        /// The shape after a first request, which allocates the resources that the system keeps permanently.
        static func warm(_ kind: SessionKind) async throws -> ProcessShape {
            let server = try LoopbackServer()
            server.route("/") { _ in .text("hello") }
            let (session, transport) = kind.makeCurlPair { _ in }
            let receiver = RecordingReceiver()
            session.makeTask(with: try NetworkRequest(url: server.url()), receiver: receiver).resume()
            #expect(await receiver.end().text == "hello")
            try await TestThread.run { transport.closeAndWait() }
            await server.stopped()
            return try await TestThread.run { ProcessShape() }
        }
    }
#endif
