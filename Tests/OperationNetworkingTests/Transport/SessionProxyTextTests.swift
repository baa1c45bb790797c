// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import Foundation
    import OperationNetworking
    import OperationTestKit
    import Testing

    @Suite(.timeLimit(.minutes(2)))
    struct SessionProxyTextTests {
        @Test(arguments: [
            "http://anna:s3cret@127.0.0.1:99999", "http://anna:s3 cret@127.0.0.1:1", "odd://anna:s3cret@127.0.0.1:1",
            "http://anna:s3cret@[::1:1", "http://anna:s3cret@127.0.0.1:1",
        ])
        func `no error contains the password of a proxy, even if its URL is malformed`(_ url: String) async throws {
            let server = try LoopbackServer()
            let session = CurlSession.direct { $0.proxy = .url(url) }
            let error = try #require(try await session.run(server.url("/")).error)
            #expect(!"\(error)".contains("s3"), "\(error)")
            session.close()
        }
    }
#endif
