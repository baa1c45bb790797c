// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import OperationCore

extension NetworkSession {
    /// Whether it is known to make and start a task in a moment, without a word to code of the user's and without reading
    /// a file.
    var startsTasksBriefly: Bool {
        if let exchange = self as? ExchangeSession {
            let configuration = exchange.configuration
            return configuration.cache == nil && configuration.deadline == nil && configuration.rateLimit == nil
                && exchange.transport.startsTasksBriefly
        }
        if let standard = self as? DefaultNetworkSession { return standard.isBrief }
        #if OPERATIONKIT_LIBCURL
            return self is CurlSession
        #else
            return false
        #endif
    }

    /// The session itself, or the one that the default session uses, if it is an ``ExchangeSession``.
    var exchange: ExchangeSession? {
        if let exchange = self as? ExchangeSession { return exchange }
        return (self as? DefaultNetworkSession)?.session as? ExchangeSession
    }
}
