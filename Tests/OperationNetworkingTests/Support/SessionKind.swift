// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationNetworking

/// The sessions that the conformance suite is run with.
enum SessionKind: String, Sendable, CaseIterable {
    #if os(Linux)
        case curl
    #endif

    /// A fresh session, and how it is closed.
    func makeSession() -> (any NetworkSession, @Sendable () -> Void) {
        switch self {
        #if os(Linux)
            case .curl: makeCurlSession { _ in }
        #endif
        }
    }

    #if os(Linux)
        func makeCurlSession(
            _ change: (inout CurlSession.Configuration) -> Void
        ) -> (any NetworkSession, @Sendable () -> Void) {
            var configuration = CurlSession.Configuration()
            configuration.proxy = .none
            change(&configuration)
            let session = CurlSession(configuration: configuration)
            return (session, { session.close() })
        }
    #endif
}
