// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationCore
import OperationNetworking

/// The common configuration of all requests in a run, with the session, headers, time limits and retries.
final class Client: Sendable {
    let settings: Settings
    let session: ExchangeSession
    /// The serial queue for all handlers.
    let callbacks = DispatchQueue(label: "opget")
    private let hosts: HostCategories
    private let retry: Retry

    init(_ settings: Settings) {
        self.settings = settings
        hosts = HostCategories(limit: settings.perHost)
        var transport = Self.transport(settings)
        if let rate = settings.limitRate { transport = LimitedSession(over: transport, bytesPerSecond: rate) }
        session = ExchangeSession(over: transport)
        // The budget limits the retries if a server is down, regardless of the number of files.
        let reserve = max(20, settings.retries * min(settings.jobs, 20))
        var retry = Retry(budget: RetryBudget(reserve: reserve, refillPerSecond: 2))
        retry.policy.maximumAttempts = settings.retries + 1
        retry.policy.window = .seconds(600)
        retry.policy.rules.append(
            .failure(SegmentOperation.wholeFile, because: "One of several servers or proxies does not support ranges."))
        self.retry = retry
    }

    /// The progress in bytes after which the number of attempts starts again at zero, as for OperationKit's own
    /// downloads.
    static let leastProgress: Int64 = 64 << 10

    /// Returns whether a request failed only because the maximum number of attempts was reached.
    func ranOutOfAttempts(_ error: NetworkError) -> Bool {
        error.retryEnd == .attemptsUsedUp || error.retryEnd == .windowOver
    }

    private static func transport(_ settings: Settings) -> any NetworkSession {
        #if OPERATIONKIT_LIBCURL
            if CurlSession.problem == nil {
                var configuration = CurlSession.Configuration()
                configuration.maximumConnectionsPerHost = settings.perHost
                return CurlSession(configuration: configuration)
            }
        #endif
        return DefaultNetworkSession.platformTransport
    }

    /// Creates the request for a URL, or throws an error that describes the problem.
    static func request(
        _ method: String = "GET", _ url: URL, _ settings: Settings
    ) throws(NetworkError) -> NetworkRequest {
        var headers: HeaderFields = ["User-Agent": settings.userAgent, "Accept": "*/*"]
        for line in settings.headers {
            if line.name.lowercased() == "user-agent" || line.name.lowercased() == "accept" {
                headers[line.name] = line.value
            } else {
                headers.add(line.name, line.value)
            }
        }
        var options = TransferOptions()
        options.timeouts = TransferTimeouts(
            connect: settings.connectTimeout, firstByte: settings.timeout, idle: settings.timeout)
        return try NetworkRequest(method, url: url, headers: headers, options: options)
    }

    /// Returns the category for the host of a file.
    func category(of item: DownloadItem) -> OperationCategory { hosts.category(of: item.url) }

    /// Configures an operation in the same way as all other operations.
    ///
    /// - Parameter limitsHost: Whether more operations for the host may run at the same time than the limit allows.
    func prepare(_ operation: some AnyNetworkOperation, for item: DownloadItem, limitsHost: Bool = true) {
        operation.name = item.shownName
        operation.retry = settings.retries > 0 ? retry : nil
        operation.offline = settings.waitsForNetwork ? .standard : nil
        if limitsHost { operation.categories = [category(of: item)] }
        operation.progressPacing = ProgressPacing(smallestStep: 64 << 10)
    }
}
