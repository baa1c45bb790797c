// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import OperationNetworking

    extension SessionKind {
        /// The kinds that use the libcurl transport, which withstands all tests.
        static let onLibcurl: [SessionKind] = [.curl, .exchangeOverCurl]

        /// Creates a configured session of this kind, and its transport, which closes it.
        func makeCurlPair(
            _ change: (inout CurlSession.Configuration) -> Void
        ) -> (any NetworkSession, CurlSession) {
            var configuration = CurlSession.Configuration()
            configuration.proxy = .none
            change(&configuration)
            let session = CurlSession(configuration: configuration)
            return (self == .exchangeOverCurl ? ExchangeSession(over: session) : session, session)
        }
    }
#endif
