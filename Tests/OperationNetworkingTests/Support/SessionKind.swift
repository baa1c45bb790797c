// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Foundation
import OperationNetworking

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The sessions that the conformance suite tests.
enum SessionKind: String, Sendable, CaseIterable {
    #if OPERATIONKIT_LIBCURL
        case curl
        /// An exchange session over the session on libcurl.
        ///
        /// Without additional features it must behave in the same way.
        case exchangeOverCurl
    #endif
    /// The session of Foundation.
    ///
    /// On Linux it can end the process, so it is used only in child processes.
    case urlSession

    #if OPERATIONKIT_LIBCURL
        static let allCases: [SessionKind] = [.curl, .exchangeOverCurl]
    #endif

    /// Returns a new session and a closure that closes it.
    func makeSession() -> (any NetworkSession, @Sendable () -> Void) {
        switch self {
        #if OPERATIONKIT_LIBCURL
            case .curl, .exchangeOverCurl: makeSession { _ in }
        #endif
        case .urlSession: makeURLSession()
        }
    }

    private func makeURLSession() -> (any NetworkSession, @Sendable () -> Void) {
        let session = URLSession(configuration: .ephemeral)
        return (session, { [weak session] () -> Void in session?.closeNetworkTasks() })
    }

    #if OPERATIONKIT_LIBCURL
        func makeSession(
            by clock: SessionClock? = nil, _ change: (inout CurlSession.Configuration) -> Void
        ) -> (any NetworkSession, @Sendable () -> Void) {
            switch self {
            case .curl: makeCurlSession(clock, change)
            case .exchangeOverCurl: makeExchangeSession(clock, change)
            case .urlSession: makeURLSession()
            }
        }

        private func makeCurlSession(
            _ clock: SessionClock?, _ change: (inout CurlSession.Configuration) -> Void
        ) -> (any NetworkSession, @Sendable () -> Void) {
            let session = CurlSession.direct(by: clock, change)
            return (session, { session.close() })
        }

        private func makeExchangeSession(
            _ clock: SessionClock?, _ change: (inout CurlSession.Configuration) -> Void
        ) -> (any NetworkSession, @Sendable () -> Void) {
            let (session, close) = makeCurlSession(clock, change)
            var exchange = ExchangeConfiguration()
            exchange.redirects = .stop
            return (ExchangeSession(over: session, configuration: exchange), close)
        }
    #endif
}
