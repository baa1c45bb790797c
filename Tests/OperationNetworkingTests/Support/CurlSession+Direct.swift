// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if OPERATIONKIT_LIBCURL
    import OperationNetworking

    extension CurlSession {
        /// A session that uses no proxy, and that can use a clock of the test for its limits.
        static func direct(
            by clock: SessionClock? = nil, _ change: (inout Configuration) -> Void = { _ in }
        ) -> CurlSession {
            var configuration = Configuration()
            configuration.proxy = .none
            change(&configuration)
            guard let clock else { return CurlSession(configuration: configuration) }
            return CurlSession(configuration: configuration, clockOffset: { clock.lead })
        }
    }
#endif
