// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import OperationNetworking

    extension SessionKind {
        /// The kinds that stand on our own transport, which can take anything.
        static let onLibcurl: [SessionKind] = [.curl, .exchangeOverCurl]

        /// A session of such a kind, set up as a test needs it, and how it is closed.
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
