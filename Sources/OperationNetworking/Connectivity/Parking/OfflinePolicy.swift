// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Foundation

/// What operations do while the network is gone: they wait for it, within limits, and go on when it returns.
///
/// ```swift
/// func albums(at url: URL) -> NetworkDataOperation<Data> {
///     let operation = NetworkDataOperation(url: url) { data, _ in data }
///     operation.offline = .standard
///     return operation
/// }
/// ```
///
/// Without a policy a request is sent whether or not there is a network. For all operations of a service, set
/// ``NetworkBase/offline``.
///
/// To wait is no attempt that retry counts: an attempt that failed while the network was gone is no reason to give up.
public struct OfflinePolicy: Sendable {
    /// What is done with a request that is ready to leave, while the network is gone.
    ///
    /// More cases may be added.
    public enum BeforeSending: Sendable, Hashable {
        /// It is sent all the same.
        case send
        /// It waits for the network.
        case wait
        /// It fails at once, with the code `offline`.
        case fail
    }

    /// Where operations wait, and what says whether the network is there.
    public var lot: ParkingLot
    /// What is done with a request that is ready to leave, while the network is gone: it waits.
    public var beforeSending = BeforeSending.wait
    /// After which failures an operation waits, if the network is gone by then; none if it is empty.
    public var rules = OfflineRule.standard
    /// The methods that do no harm if they are carried out twice; nil if that is so whatever the method is.
    ///
    /// Others wait only if nothing of the request was sent, or if it has an `Idempotency-Key`.
    public var methods = RetryPolicy.standard.methods
    /// How long an operation waits for the network in all; nil for as long as it takes: 5 minutes.
    ///
    /// On the clock of the ``lot``. After that it fails with the code `offlineTooLong`. The time for which it waits its
    /// turn when the network is back does not count, nor does a wait that would have been too long while the operation
    /// was suspended.
    public var longestWait: Duration? = .seconds(300)
    /// How often an operation waits: 10 times.
    ///
    /// After that it fails with the code `offlineTooOften`.
    public var mostWaits = 10
    /// Whether a request needs the network: all do but those to this machine.
    public var concerns: @Sendable (NetworkRequest) -> Bool = { !OfflinePolicy.staysHere($0) }

    /// Makes the standard policy with a lot of your own.
    public init(lot: ParkingLot = .shared) {
        self.lot = lot
    }

    /// Waits up to five minutes for the network.
    public static let standard = OfflinePolicy()

    /// Fails at once, with the code `offline`, while the network is gone: for what a user waits for and could try
    /// again.
    public static let failFast: OfflinePolicy = {
        var policy = OfflinePolicy()
        policy.beforeSending = .fail
        policy.rules = []
        return policy
    }()

    /// Whether a request goes to this machine itself, for which no network is needed.
    public static func staysHere(_ request: NetworkRequest) -> Bool {
        let host = request.origin.place.host
        if host == "localhost" || host.hasSuffix(".localhost") { return true }
        return host == "::1" || host.hasPrefix("127.") && HostName.isIPv4(host)
    }

    /// The rule for a failure, if waiting could help and does no harm.
    package func rule(for error: NetworkError, of request: NetworkRequest) -> OfflineRule? {
        // The request of whose credential that is was rejected, or not sent.
        let refresh = error.codeOfRefresh
        guard let rule = rules.first(where: { $0.code == refresh ?? error.code }) else { return nil }
        let isHarmless =
            refresh != nil || error.isUnsent || methods?.contains(request.method) ?? true
            || request.idempotencyKey != nil
        return isHarmless ? rule : nil
    }
}
